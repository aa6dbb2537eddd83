package system_test

import (
	"os"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// boundsEnv makes the test binary another program, which becomes what its arguments say,
// bounded as a unit of systemd with that text would be, but for its capabilities.
const boundsEnv = "RANKFS_SYSTEM_BOUNDS"

// settings are those of a unit, by name.
func settings(text string) map[string][]string {
	all := make(map[string][]string)
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(text, -1) {
		all[m[1]] = append(all[m[1]], strings.Fields(m[2])...)
	}
	return all
}

// becomeBounded returns only if that fails.
func becomeBounded(unit map[string][]string, args []string) error {
	runtime.LockOSThread()
	is := func(name string) bool { return slices.Equal(unit[name], []string{"yes"}) }
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	if is("MemoryDenyWriteExecute") {
		if err := unix.Prctl(unix.PR_SET_MDWE, unix.PR_MDWE_REFUSE_EXEC_GAIN, 0, 0, 0); err != nil {
			return err
		}
	}
	if slices.Equal(unit["UMask"], []string{"0077"}) {
		unix.Umask(0o077)
	}
	var f filter
	if families, ok := unit["RestrictAddressFamilies"]; ok {
		f.families(families)
	}
	if is("RestrictSUIDSGID") {
		for call, mode := range map[uint32]uint32{
			unix.SYS_CHMOD: 1, unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, unix.SYS_FCHMODAT2: 2, unix.SYS_MKDIR: 1, unix.SYS_MKDIRAT: 2,
			unix.SYS_MKNOD: 1, unix.SYS_MKNODAT: 2, unix.SYS_CREAT: 1, unix.SYS_OPEN: 2, unix.SYS_OPENAT: 3,
		} {
			f.refuse(call, mode, unix.S_ISUID|unix.S_ISGID, unix.EPERM)
		}
		f.refuse(unix.SYS_OPENAT2, 3, ^uint32(0), unix.ENOSYS) // its mode is not seen; its arguments have a size
	}
	if is("RestrictRealtime") {
		f.refuse(unix.SYS_SCHED_SETSCHEDULER, 1, unix.SCHED_FIFO|unix.SCHED_RR, unix.EPERM)
	}
	if is("LockPersonality") {
		f.refuse(unix.SYS_PERSONALITY, 0, ^uint32(0), unix.EPERM)
	}
	if err := f.apply(); err != nil {
		return err
	}
	return unix.Exec(args[0], args, os.Environ())
}

// A filter refuses system calls, as the kernel asks it for each.
type filter []unix.SockFilter

// Where the kernel shows a filter the call and its arguments, on a little-endian machine.
const (
	callAt     = 0
	argumentAt = 16
)

func (f *filter) load(at uint32) { f.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, at, 0, 0) }

func (f *filter) end(with uint32) { f.add(unix.BPF_RET|unix.BPF_K, with, 0, 0) }

func (f *filter) add(code uint16, k uint32, then, otherwise uint8) {
	*f = append(*f, unix.SockFilter{Code: code, K: k, Jt: then, Jf: otherwise})
}

// refuse has a call fail that has any of some bits in an argument.
func (f *filter) refuse(call, argument, bits uint32, with unix.Errno) {
	f.load(callAt)
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, call, 0, 3)
	f.load(argumentAt + 8*argument)
	f.add(unix.BPF_JMP|unix.BPF_JSET|unix.BPF_K, bits, 0, 1)
	f.end(unix.SECCOMP_RET_ERRNO | uint32(with))
}

// families has sockets be of these alone.
func (f *filter) families(names []string) {
	f.load(callAt)
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, unix.SYS_SOCKET, 0, uint8(len(names)+2))
	f.load(argumentAt)
	for i, name := range names {
		number := map[string]uint32{"AF_UNIX": unix.AF_UNIX, "AF_INET": unix.AF_INET, "AF_INET6": unix.AF_INET6, "AF_NETLINK": unix.AF_NETLINK}[name]
		f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, number, uint8(len(names)-i), 0)
	}
	f.end(unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT))
}

// apply has the kernel ask the filter from now on.
func (f *filter) apply() error {
	f.end(unix.SECCOMP_RET_ALLOW)
	program := unix.SockFprog{Len: uint16(len(*f)), Filter: &(*f)[0]}
	_, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program)))
	if errno != 0 {
		return errno
	}
	return nil
}
