#include "common/comm/mailbox.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>

#include "common/support/error.hpp"

namespace fivecuts {

void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) {
  if (to != nullptr && from != nullptr && bytes > 0) std::memcpy(to, from, bytes);
}

/// Shared by the rank that waits for it, the mailbox, and the thread that copies.
struct Post {
  static std::shared_ptr<Post> send(Route route, const std::byte* data, std::size_t bytes) {
    return std::make_shared<Post>(route, true, data, nullptr, bytes);
  }
  static std::shared_ptr<Post> receive(Route route, std::byte* data, std::size_t bytes) {
    return std::make_shared<Post>(route, false, nullptr, data, bytes);
  }
  Post(Route in, bool is_send, const std::byte* from, std::byte* to, std::size_t size)
      : route(in), sends(is_send), source(from), target(to), bytes(size) {}

  /// The store and the loads of `ended` have one order for all threads: after a weaker store,
  /// notify_all() could overlook a thread that is just falling asleep.
  void end() {
    ended = 1;
    ended.notify_all();
  }

  const Route route;
  const bool sends;
  const std::byte* source;  // of a send
  std::byte* const target;  // of a receive
  const std::size_t bytes;
  std::vector<std::byte> kept;  // the data of an eager send
  std::string fault;            // why it failed; written before it ends
  std::atomic<int> ended = 0;
};

std::shared_ptr<Post> Mailbox::put(const std::shared_ptr<Post>& post) {
  const std::lock_guard lock(mutex_);
  if (given_up_) {
    post->fault = peer_gone;
    post->end();
    return nullptr;
  }
  const auto first = waiting_.lower_bound(post->route);
  const bool meets =
      first != waiting_.end() && first->first == post->route && first->second->sends != post->sends;
  if (!meets) {
    waiting_.emplace(post->route, post);  // behind those of the same route
    return nullptr;
  }
  std::shared_ptr<Post> other = std::move(first->second);
  waiting_.erase(first);
  return other;
}

bool Mailbox::withdraw(const Post& post) {
  const std::lock_guard lock(mutex_);
  auto [at, end] = waiting_.equal_range(post.route);
  while (at != end && at->second.get() != &post) ++at;
  if (at == end) return false;
  waiting_.erase(at);
  return true;
}

void Mailbox::give_up() {
  const std::lock_guard lock(mutex_);
  given_up_ = true;
  for (const auto& [route, post] : waiting_) {
    post->fault = peer_gone;
    post->end();
  }
  waiting_.clear();
}

namespace {

void carry_over(Post& send, Post& receive) {
  if (send.bytes == receive.bytes) {
    copy_bytes(receive.target, send.source, send.bytes);
  } else {
    receive.fault =
        fmt::format("rank {} waits for {} bytes from rank {}, which sent {}",
                    receive.route.destination, receive.bytes, send.route.source, send.bytes);
  }
  send.end();
  receive.end();
}

}  // namespace

Posts::Posts(std::shared_ptr<std::vector<Mailbox>> mailboxes) : mailboxes_(std::move(mailboxes)) {}

Posts::~Posts() {
  for (const auto& post : posts_) {
    if (post->ended == 0 && !mailbox_of(post->route).withdraw(*post)) post->ended.wait(0);
  }
}

Mailbox& Posts::mailbox_of(Route route) const {
  return mailboxes_->at(static_cast<std::size_t>(route.destination));
}

void Posts::send(Route route, const std::byte* data, std::size_t bytes, bool eager) {
  Mailbox& mailbox = mailbox_of(route);
  const auto post = Post::send(route, data, bytes);
  if (!eager) {
    posts_.push_back(post);
  } else if (data != nullptr) {
    post->kept.assign(data, data + bytes);
    post->source = post->kept.data();
  }
  if (const auto receive = mailbox.put(post)) carry_over(*post, *receive);
}

void Posts::receive(Route route, std::byte* data, std::size_t bytes) {
  Mailbox& mailbox = mailbox_of(route);
  const auto post = Post::receive(route, data, bytes);
  posts_.push_back(post);
  if (const auto send = mailbox.put(post)) carry_over(*send, *post);
}

void Posts::wait() {
  for (const auto& post : posts_) {
    post->ended.wait(0);
    if (!post->fault.empty()) fail(post->fault);
  }
}

bool Posts::done() {
  if (!std::ranges::all_of(posts_, [](const auto& post) { return post->ended != 0; })) return false;
  wait();
  return true;
}

}  // namespace fivecuts
