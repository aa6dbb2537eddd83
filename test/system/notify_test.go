package system_test

import (
	"net"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// A daemon that systemd has started tells it when the mount is there, and that it ends: a
// unit that is never ready is killed after a while.
func TestSystemdIsTold(t *testing.T) {
	t.Parallel()
	n := newNode(t)
	socket := filepath.Join(t.TempDir(), "notify")
	told, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer told.Close()
	next := func() string {
		told.SetReadDeadline(time.Now().Add(waitTime))
		b := make([]byte, 100)
		size, err := told.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		return string(b[:size])
	}
	n.Under("env", "NOTIFY_SOCKET="+socket)
	n.start()
	if got := next(); got != "READY=1" {
		t.Errorf("it begins with %q", got)
	}
	if out, err := exec.Command("mountpoint", n.mount).CombinedOutput(); err != nil {
		t.Errorf("it is ready, and: %s", out)
	}
	n.stop()
	if got := next(); got != "STOPPING=1" {
		t.Errorf("it ends with %q", got)
	}
}
