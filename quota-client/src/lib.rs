//! For fileservers: asks the quota service before an RPC is executed, meters it, and reports what it cost.
