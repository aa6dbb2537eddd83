// Package secure has a real KDC and an HDFS that demands Kerberos. All listens
// on this host's loopback only, and ends with the test.
package secure
