// Package plan says which records of a dataset rank r reads at step k, which hosts are
// near them, and which node owns each chunk.
//
// All of it is pure: it starts no goroutine, opens no file, and knows neither the
// cluster's agreement nor a cache. Nodes that give it the same facts get the same
// answers.
package plan
