// Package netns moves threads and programs onto another host: a network, a
// host name and a tree of mounts that some process holds.
package netns

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// open opens namespaces of a process.
func open(pid int, kinds ...string) (fds []int, err error) {
	for _, kind := range kinds {
		fd, err := unix.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind), unix.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			closeAll(fds)
			return nil, fmt.Errorf("open %s namespace of process %d: %w", kind, pid, err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

func closeAll(fds []int) {
	for _, fd := range fds {
		unix.Close(fd)
	}
}

func enter(pid int, kinds ...string) error {
	fds, err := open(pid, kinds...)
	if err != nil {
		return err
	}
	defer closeAll(fds)
	for i, fd := range fds {
		if err := unix.Setns(fd, 0); err != nil {
			return fmt.Errorf("enter %s namespace of process %d: %w", kinds[i], pid, err)
		}
	}
	return nil
}

// Do calls f on a thread that is on the network of the host which process pid
// holds. Sockets stay on the network where they were made; so f makes them
// itself, not through another goroutine.
func Do(pid int, f func() error) error {
	done := make(chan error, 1)
	go func() { done <- visit(pid, f) }()
	return <-done
}

// visit does it on its own thread, which goes back afterwards. It must not end
// instead: the kernel would kill the children that it once started.
func visit(pid int, f func() error) error {
	home, err := lockThread()
	if err != nil {
		return err
	}
	defer unix.Close(home)
	defer func() {
		// A thread that cannot go back ends with its goroutine.
		if unix.Setns(home, unix.CLONE_NEWNET) == nil {
			runtime.UnlockOSThread()
		}
	}()
	if err := enter(pid, "net"); err != nil {
		return err
	}
	return f()
}

// lockThread keeps the goroutine on its thread, and opens that one's network.
func lockThread() (home int, err error) {
	runtime.LockOSThread()
	home, err = unix.Open("/proc/thread-self/ns/net", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		runtime.UnlockOSThread()
		return 0, fmt.Errorf("open network namespace: %w", err)
	}
	return home, nil
}

// Exec replaces this process by a program on the host which process pid
// holds, in the same working directory. It returns only if it cannot.
func Exec(pid int, args, env []string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	// A thread that shares its working directory may not change its mounts.
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return err
	}
	if err := enter(pid, "net", "uts", "mnt"); err != nil {
		return err
	}
	if err := os.Chdir(dir); err != nil {
		return err
	}
	path, err := exec.LookPath(args[0])
	if err != nil {
		return err
	}
	return fmt.Errorf("run %s: %w", path, unix.Exec(path, args, env))
}
