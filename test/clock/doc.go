// Package clock has one process see another time of day. The machine's clock
// stays as it is, for there is one of it, and Linux has no namespace for it.
//
// A Go program asks the vDSO what time it is: code of the kernel's that is
// mapped into every process. What is written there through /proc/PID/mem is
// that process's own copy. The code that Jump puts there asks the kernel and
// adds to what it says of the time of day. Time since a start of any kind stays
// right, as it does when a clock is set.
package clock
