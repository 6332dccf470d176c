use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::PoisonError;

use crate::pb::pdpb::Member;

/// The members of PD and which of them leads.
#[derive(Debug, Default)]
pub(super) struct Members(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    members: Vec<Member>,
    leader: usize,
}

impl Members {
    /// Says where the members listen, and whether with TLS.
    pub(super) fn set(&self, addresses: impl Iterator<Item = SocketAddr>, tls: bool) {
        let scheme = if tls { "https" } else { "http" };
        let member = |(nth, address): (u64, SocketAddr)| Member {
            name: format!("pd-{nth}"),
            member_id: nth,
            peer_urls: Vec::new(),
            client_urls: vec![format!("{scheme}://{address}")],
            binary_version: "v8.5.2".to_owned(),
        };
        self.with(|state| state.members = (1..).zip(addresses).map(member).collect());
    }

    /// Returns all members, and the one that leads.
    pub(super) fn list(&self) -> (Vec<Member>, Option<Member>) {
        self.with(|state| {
            let leader = state.members.get(state.leader).cloned();
            (state.members.clone(), leader)
        })
    }

    pub(super) fn leads(&self, member: usize) -> bool {
        self.with(|state| state.leader == member)
    }

    /// Lets the next member lead, if `member` still does.
    pub(super) fn resign(&self, member: usize) {
        self.with(|state| {
            if state.leader == member && !state.members.is_empty() {
                state.leader = (member + 1) % state.members.len();
            }
        });
    }

    /// Lets the next member lead.
    pub(super) fn move_on(&self) {
        let leader = self.with(|state| state.leader);
        self.resign(leader);
    }

    fn with<R>(&self, act: impl FnOnce(&mut State) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
