// Package plans tests what becomes of plans, queues and the readers behind them
// while hosts, daemons and datanodes fail: on datasets in a real HDFS, which have
// plans, where those on a node's disks have none to go wrong.
package plans
