package system_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

func TestModesAndOwner(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name      string
		args      []string
		dir, file fs.FileMode
		uid, gid  uint32
	}{
		{"default", nil, 0o555, 0o444, 0, 0},
		{"umask 027", []string{"--umask", "027"}, 0o550, 0o440, 0, 0},
		{"owner", []string{"--uid", "1234", "--gid", "4321", "--umask", "077"}, 0o500, 0o400, 1234, 4321},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			n := start(t, tt.args...)
			n.create("d", newLines(t, 10), "--batch", "5")
			for path, mode := range map[string]fs.FileMode{
				n.mount: fs.ModeDir | tt.dir, n.path(): fs.ModeDir | tt.dir, n.path("d"): fs.ModeDir | tt.dir,
				n.path("d", "rank-0"): fs.ModeDir | tt.dir, n.batch("d", 0, 1): tt.file, n.path("d", "locality"): tt.file,
				n.mount + "/.rankfs/status.json": tt.file,
			} {
				info, err := os.Lstat(path)
				must(t, err)
				st := info.Sys().(*syscall.Stat_t)
				if info.Mode() != mode || st.Uid != tt.uid || st.Gid != tt.gid {
					t.Errorf("%s: %v of %d:%d, want %v of %d:%d", path, info.Mode(), st.Uid, st.Gid, mode, tt.uid, tt.gid)
				}
			}
		})
	}
}

// Other users see what the modes permit, and nothing with --private.
func TestOtherUsers(t *testing.T) {
	t.Parallel()
	closed := start(t, "--private")
	closed.create("d", newLines(t, 10), "--batch", "5")
	open := start(t, "--uid", "1234", "--gid", "4321", "--umask", "027")
	open.create("d", newLines(t, 10), "--batch", "5")
	for _, tt := range []struct {
		name     string
		n        *node
		uid, gid uint32
		may      bool
	}{
		{"--private", closed, 65534, 65534, false},
		{"owner", open, 1234, 1, true},
		{"group", open, 1, 4321, true},
		{"others", open, 65534, 65534, false},
	} {
		for _, path := range []string{tt.n.batch("d", 0, 0), tt.n.path("d", "dataset.json"), tt.n.path("d", "rank-0", "batch-000001.idx")} {
			err := as(tt.uid, tt.gid, "cat", path)
			if tt.may != (err == "") || err != "" && !strings.Contains(err, "Permission denied") {
				t.Errorf("%s: cat %s: %q", tt.name, path, err)
			}
		}
	}
}

// as runs a command as another user and returns how it failed.
func as(uid, gid uint32, args ...string) string {
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: gid}}
	var errs bytes.Buffer
	cmd.Stderr = &errs
	if err := cmd.Run(); err != nil {
		return err.Error() + ": " + errs.String()
	}
	return ""
}

func TestMountOptions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		args []string
		want string // besides the others
		not  string
	}{
		{[]string{"--private"}, "ro", "allow_other"},
		{nil, "allow_other", "rw"},
	} {
		n := start(t, tt.args...)
		options := mountOptions(t, n.mount)
		for _, o := range []string{"nosuid", "nodev", "noexec", "ro", "default_permissions", tt.want} {
			if !options[o] {
				t.Errorf("mount options %v: %s is not among them", options, o)
			}
		}
		if options[tt.not] {
			t.Errorf("mount options %v: %s is among them", options, tt.not)
		}
	}
}

// mountOptions are those of the mount and of its file system.
func mountOptions(t *testing.T, point string) map[string]bool {
	table, err := os.ReadFile("/proc/self/mountinfo")
	must(t, err)
	options := make(map[string]bool)
	for line := range strings.Lines(string(table)) {
		if f := strings.Fields(line); f[4] == point {
			for _, o := range strings.Split(f[5]+","+f[len(f)-1], ",") {
				options[o] = true
			}
		}
	}
	return options
}
