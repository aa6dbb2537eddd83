package system_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"
)

// noNetlinkEnv makes the test binary another program, to which the kernel
// refuses sockets of netlink, as a unit of systemd that does not name them does.
const noNetlinkEnv = "RANKFS_SYSTEM_NO_NETLINK"

// withoutNetlink becomes a program; it returns only if that fails.
func withoutNetlink(args []string) error {
	runtime.LockOSThread()
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return err
	}
	const number, domain = 0, 16 // offsets in struct seccomp_data, of a little-endian machine
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	equal := func(k uint32, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: k, Jf: otherwise}
	}
	end := func(k uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: k} }
	filter := []unix.SockFilter{
		load(number), equal(unix.SYS_SOCKET, 3),
		load(domain), equal(unix.AF_NETLINK, 1),
		end(unix.SECCOMP_RET_ERRNO | uint32(unix.EAFNOSUPPORT)),
		end(unix.SECCOMP_RET_ALLOW),
	}
	f := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	if _, _, errno := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&f))); errno != 0 {
		return errno
	}
	return unix.Exec(args[0], args, os.Environ())
}

// A host whose addresses are not known reads local replicas only by its name, and
// says so, where somebody looks and in the log.
func TestUnknownAddressesAreTold(t *testing.T) {
	if all := start(t).status().Warnings; slices.ContainsFunc(all, func(w string) bool { return strings.Contains(w, "addresses") }) {
		t.Errorf("warnings where addresses are known: %q", all)
	}
	t.Setenv(noNetlinkEnv, "1")
	n := newNode(t)
	n.Under("/proc/self/exe")
	n.start("--host", "node1.example.com")
	told := func(all []string) bool {
		return slices.ContainsFunc(all, func(w string) bool {
			return strings.Contains(w, "addresses of this host") && strings.Contains(w, "node1.example.com")
		})
	}
	if all := n.status().Warnings; !told(all) {
		t.Errorf("warnings of status: %q", all)
	}
	if log := n.Log(); !told(strings.Split(log, "\n")) {
		t.Errorf("log: %s", log)
	}
}

// The unit is installed with the program's place in it, lets the daemon have the
// sockets that it needs, waits for the network, and is started again until it
// works.
func TestUnit(t *testing.T) {
	dir := t.TempDir()
	prefix := dir + "/opt/rankfs"
	if out, err := exec.Command("make", "-s", "-C", "../..", "install-unit", "DESTDIR="+dir, "PREFIX="+prefix).CombinedOutput(); err != nil {
		t.Fatalf("make install-unit: %v\n%s", err, out)
	}
	must(t, os.MkdirAll(prefix+"/bin", 0o755))
	must(t, os.WriteFile(prefix+"/bin/rankfs", nil, 0o755)) // systemd looks whether it could be executed
	// It says what it does not understand, and leaves it out, but it ends as if all were well.
	if out, err := exec.Command("systemd-analyze", "verify", "--man=no", dir+"/etc/systemd/system/rankfs@mnt-rankfs.service").CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("systemd says of the unit: %v\n%s", err, out)
	}
	text, err := os.ReadFile(filepath.Join(dir, "etc/systemd/system/rankfs@.service"))
	must(t, err)
	unit := make(map[string][]string)
	for _, m := range regexp.MustCompile(`(?m)^(\w+)=(.*)$`).FindAllStringSubmatch(string(text), -1) {
		unit[m[1]] = append(unit[m[1]], strings.Fields(m[2])...)
	}
	for key, want := range map[string]string{
		"ExecStart":               prefix + "/bin/rankfs",
		"ExecStop":                prefix + "/bin/rankfs",
		"ExecStopPost":            "-" + prefix + "/bin/rankfs",
		"RestrictAddressFamilies": "AF_NETLINK",
		"After":                   "network-online.target",
		"Wants":                   "network-online.target",
		"Restart":                 "on-failure",
		"StartLimitIntervalSec":   "0",
	} {
		if !slices.Contains(unit[key], want) {
			t.Errorf("%s=%s, without %s", key, strings.Join(unit[key], " "), want)
		}
	}
	if strings.Contains(string(text), "/usr/local") {
		t.Errorf("another prefix is left in the unit:\n%s", text)
	}
}
