// Package hdfs tests rankfs on the hosts of a real HDFS: the daemon, its mount
// and all its readers are on a host of the cluster.
package hdfs
