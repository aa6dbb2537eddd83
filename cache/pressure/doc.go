// Package pressure says how much memory a cache may use, now.
//
// A budget is given once, but other processes' need of memory changes, and a limit
// that is reached kills the process: slabs on a tmpfs are memory of the
// cgroup that touched them first, and without swap nothing of them can be
// reclaimed. So the limits and uses of all cgroups above the process are read,
// with what the machine has left and how long tasks stall for memory, and the
// budget becomes smaller in time.
package pressure
