// Package plan answers one question: which records of a dataset does rank r read
// at step k, who is near them, and who owns which chunk.
//
// All of it is pure: it starts no goroutine, opens no file, and knows neither the
// cluster's agreement nor a cache. Nodes that give it the same facts get the same
// answers.
package plan
