package system_test

import (
	"errors"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// doings are what a rank does to a file system that it may change, each by one system
// call where there is one.
var doings = map[string]func(order) (int64, string, error){
	"mkdir":  func(o order) (int64, string, error) { return 0, "", unix.Mkdir(o.Path, 0o700) },
	"rmdir":  func(o order) (int64, string, error) { return 0, "", unix.Rmdir(o.Path) },
	"unlink": func(o order) (int64, string, error) { return 0, "", unix.Unlink(o.Path) },
	"rename": func(o order) (int64, string, error) {
		return 0, "", unix.Renameat2(unix.AT_FDCWD, o.Path, unix.AT_FDCWD, o.Name, uint(o.Off))
	},
	"write": writeFile,
	"cat":   catFile,
	"list":  listNames,
}

// writeFile makes a file anew.
func writeFile(o order) (int64, string, error) {
	fd, err := unix.Open(o.Path, unix.O_WRONLY|unix.O_CREAT|unix.O_TRUNC|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return 0, "", err
	}
	n, err := unix.Write(fd, []byte(o.Name))
	return int64(n), "", errors.Join(err, unix.Close(fd))
}

// catFile is what is in a file, if it is there at once.
func catFile(o order) (int64, string, error) {
	fd, err := unix.Open(o.Path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return 0, "", err
	}
	defer unix.Close(fd)
	b := make([]byte, 1<<16)
	n, err := unix.Read(fd, b)
	return int64(n), string(b[:max(n, 0)]), err
}

// listNames has the names in a directory.
func listNames(o order) (int64, string, error) {
	entries, err := os.ReadDir(o.Path)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	slices.Sort(names)
	return int64(len(names)), strings.Join(names, " "), err
}
