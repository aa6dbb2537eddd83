package system_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestInstall installs what the tests built into a directory of its own, as a
// packager would, with another PREFIX.
func TestInstall(t *testing.T) {
	t.Parallel()
	dir, bin := t.TempDir(), t.TempDir()
	// make build is left out: what it makes is here already, under another name.
	sh(t, `
		cp -r ../../Makefile ../../docs ../../include "$2" && mkdir "$2/bin" && cp "$3" "$2/bin/rankfs"
		make -s -C "$2" -o build install DESTDIR="$1" PREFIX=/opt/rankfs`, dir, bin, rankfs)
	for _, tt := range []struct{ path, has string }{
		{"opt/rankfs/bin/rankfs", ""},
		{"opt/rankfs/share/man/man8/rankfs.8", ".SH COMMANDS"},
		{"opt/rankfs/share/man/man3/dli.3", "dli"},
		{"opt/rankfs/include/rankfs.h", "rankfs_map"},
		{"opt/rankfs/include/dli.h", "DLI_"},
		{"opt/rankfs/share/zsh/site-functions/_rankfs", "#compdef rankfs"},
		{"opt/rankfs/share/fish/vendor_completions.d/rankfs.fish", "complete -c rankfs"},
		{"opt/rankfs/share/bash-completion/completions/rankfs", "__start_rankfs"},
		{"etc/systemd/system/rankfs@.service", "ExecStart=/opt/rankfs/bin/rankfs mount"},
	} {
		text, err := os.ReadFile(filepath.Join(dir, tt.path))
		if err != nil || !strings.Contains(string(text), tt.has) {
			t.Errorf("%s: %v, or it has no %q", tt.path, err, tt.has)
		}
	}
	for _, helper := range []string{"mount.rankfs", "umount.fuse.rankfs"} {
		if to, err := os.Readlink(filepath.Join(dir, "sbin", helper)); err != nil || to != "/opt/rankfs/bin/rankfs" {
			t.Errorf("the helper %s is a link to %q: %v", helper, to, err)
		}
	}
	// It needs Go and a C compiler, and nothing that is installed for tests.
	if does := sh(t, `make -n -C ../.. build install DESTDIR="$1"`, dir); !strings.Contains(does, "go build ") || strings.Contains(does, "test/deps") {
		t.Errorf("make build install does\n%s", does)
	}
	if r := command(t, filepath.Join(dir, "opt/rankfs/bin/rankfs"), "version"); r.code != 0 {
		t.Errorf("version: %v", r)
	}
}

// TestInstallWithoutRoot installs into a home, as a user does.
func TestInstallWithoutRoot(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("/tmp", "rankfs-install-") // the tests' own is root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	sh(t, `
		chmod 755 "$1" && mkdir "$2"
		cp -r ../../Makefile ../../docs ../../include "$2" && mkdir "$2/bin" && cp "$3" "$2/bin/rankfs"
		chown -R 65534:65534 "$1" "$2"
		setpriv --reuid 65534 --regid 65534 --clear-groups make -s -C "$2" -o build install PREFIX="$1/local" >"$1/said"
		grep -q "left out, as this is not root" "$1/said"
		"$1/local/bin/rankfs" version
		test -e "$1/local/share/man/man8/rankfs.8"`, dir, dir+"/tree", rankfs)
}
