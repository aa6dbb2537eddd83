// Package order says which record stands at which position of an epoch.
//
// An order is a pure function of (meta.Order, n, seed, epoch): nothing is
// stored, so any position of any epoch can be asked for at once and two
// machines that agree on those four agree on every record. The function is
// frozen: what it answers today it answers in every later version, and
// testdata/orders.golden holds it to that.
package order
