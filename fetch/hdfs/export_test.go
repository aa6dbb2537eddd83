package hdfs

import "rankfs/fetch/hdfs/namenode"

// Refuse says why a file of that status is not served, if it is not.
func Refuse(path string, st namenode.Status) error { return file{path, st}.refuse() }
