// Package ledger keeps what is known of very many things in little memory: one
// row for each, found by its number or its key.
//
// No row has a pointer, so the garbage collector does not look through them.
// Those of things that are gone are used again, and all memory is given back when
// no row is in use. Nothing is ever moved to make room, so that no insertion takes
// long: a ledger grows by a page of rows, and its hash by a bucket at a time
// (it is a linear hash table). Beside its row a thing takes 8 bytes.
package ledger
