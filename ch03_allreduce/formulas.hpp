#pragma once
// The formulas behind algorithms.hpp: traffic by rank, and seconds on the clock.
#include "ch03_allreduce/algorithms.hpp"

namespace fivecuts::all_reduce::formulas {

Traffic gather_broadcast_traffic(const Case&, int rank);
Traffic full_exchange_traffic(const Case&, int rank);
Traffic ring_traffic(const Case&, int rank);
Traffic tree_traffic(const Case&, int rank);
Traffic halving_doubling_traffic(const Case&, int rank);
Traffic hierarchical_traffic(const Case&, int rank);
Traffic shared_traffic(const Case&, int rank);

double gather_broadcast_seconds(const Case&, const Cluster&);
double full_exchange_seconds(const Case&, const Cluster&);
double ring_seconds(const Case&, const Cluster&);
double tree_seconds(const Case&, const Cluster&);
double halving_doubling_seconds(const Case&, const Cluster&);
double hierarchical_seconds(const Case&, const Cluster&);
double shared_seconds(const Case&, const Cluster&);
double library_seconds(const Case&, const Cluster&);

/// Ranks that `hierarchical` puts together inside a node.
int ranks_inside(const Case&);

}  // namespace fivecuts::all_reduce::formulas
