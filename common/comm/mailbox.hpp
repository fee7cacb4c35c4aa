#pragma once
// Where messages between threads meet. Nothing is sent: one side copies from the other's memory.
//
// A message meets its receive in the receiver's mailbox, in a route for each sender and channel:
//
//     rank 0                          the mailbox of rank 1                        rank 1
//     send to 1  ---->  from 0, data:      send, send
//                       from 2, data:      receive, receive, receive  <----  receive from 2
//                       from 0, envelope:  send
//
// Invariant: what waits in one route is all sends or all receives, in the order of posting. A post
// of the other side takes the first of them out, under the mailbox's lock; then, without it,
// whoever came second copies, and ends both. So a post is in its route (and can be withdrawn), or
// being copied (and ends by itself, soon), or ended; and then nobody looks at its memory any more.
#include <compare>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "common/comm/transport.hpp"

namespace fivecuts {

enum class Channel { data, envelope, verdict };

struct Route {
  int source, destination;
  Channel channel;
  friend auto operator<=>(const Route&, const Route&) = default;
};

/// A send of up to so many bytes is done at once, as in Open MPI: its data is kept for the
/// receiver. A longer one is done when the receiver has it.
constexpr std::size_t eager_limit = 4096;

/// Copies numbers. A tensor of a dry run has none, hence no address: nothing is copied then.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes);

/// What a rank is told that waits for one which has ended with an exception.
inline constexpr const char* peer_gone = "another rank of this world ended with an exception";

/// One side of a message.
struct Post;

class Mailbox {
 public:
  /// Leaves `post` at the end of its route and returns nothing, or takes out the one that it meets.
  std::shared_ptr<Post> put(const std::shared_ptr<Post>& post);
  /// False if it has been taken out before.
  bool withdraw(const Post& post);
  /// From now on, waiting for anything here fails.
  void give_up();

 private:
  std::mutex mutex_;
  bool given_up_ = false;
  std::multimap<Route, std::shared_ptr<Post>> waiting_;
};

/// Posts that are waited for together. Where a message is longer or shorter than its receive,
/// nothing is copied, and waiting for the receive fails.
class Posts final : public InFlight {
 public:
  /// One mailbox for each rank of the group.
  explicit Posts(std::shared_ptr<std::vector<Mailbox>> mailboxes);
  /// Withdraws what has met nothing: afterwards nobody looks at the memory of these messages.
  ~Posts() override;

  /// `eager`: the send is done when this returns.
  void send(Route route, const std::byte* data, std::size_t bytes, bool eager);
  void receive(Route route, std::byte* data, std::size_t bytes);

  void wait() override;
  bool done() override;

 private:
  Mailbox& mailbox_of(Route route) const;
  std::shared_ptr<std::vector<Mailbox>> mailboxes_;
  std::vector<std::shared_ptr<Post>> posts_;
};

}  // namespace fivecuts
