// Package cluster gives tests, benchmarks and people a real HDFS: hosts with
// names, addresses and mounts of their own on one network that leads nowhere
// else, and on them the namenodes and datanodes of Hadoop.
//
// A host is a network namespace, a UTS namespace and a mount namespace. It has
// its own /etc/hosts, /run and /var/lib/rankfs, and TMPDIR; everything else,
// /tmp too, is that of the machine, so that programs and test data are found
// on all hosts. Anything may run there: see [Host.Command].
//
// All tests of a checkout share one cluster, or one of a few for tests that would keep
// others waiting (see site). The first that wants it starts it
// (see package keeper); some seconds after the last one ended it ends itself.
// [Shared] is for tests that leave it as it is, [Exclusive] for those that
// break something, [Bare] for those that want hosts alone. A test says, with -v, how
// long it waited for its turn, had the cluster, and mended it. A cluster needs root,
// Java and Maven: see test/deps.
package cluster
