package cluster

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"rankfs/test/cluster/internal/control"
	"rankfs/test/cluster/internal/site"
)

// The daemons of Hadoop.
const (
	NameNode = site.NameNode
	DataNode = site.DataNode
)

// Start starts a daemon of the host, unless it runs as it should. It does not wait
// until it is of use.
func (h *Host) Start(daemon string) error {
	_, err := h.cluster.order(control.Order{Do: control.Start, Host: h.Name, Daemon: daemon})
	return err
}

// StartPoor starts the datanode of the host without Hadoop's native library, in place
// of one that has it: it passes no files of blocks. Start undoes that.
func (h *Host) StartPoor() error {
	_, err := h.cluster.order(control.Order{Do: control.Start, Host: h.Name, Daemon: DataNode, Poor: true})
	return err
}

// Signal sends a daemon a signal. After SIGKILL it is gone; SIGSTOP makes it
// one that accepts connections and says nothing, until SIGCONT.
func (h *Host) Signal(daemon string, s syscall.Signal) error {
	_, err := h.cluster.order(control.Order{Do: control.Signal, Host: h.Name, Daemon: daemon, Signal: s})
	return err
}

// PID is that of a daemon of the host, as this process counts.
func (h *Host) PID(daemon string) (int, error) {
	a, err := h.cluster.order(control.Order{Do: control.Ping, Host: h.Name, Daemon: daemon})
	if err == nil && a.Pid == 0 {
		err = fmt.Errorf("no %s runs on %s", daemon, h.Name)
	}
	return a.Pid, err
}

// Kill ends a daemon at once.
func (h *Host) Kill(daemon string) error { return h.Signal(daemon, syscall.SIGKILL) }

// Stop freezes a daemon.
func (h *Host) Stop(daemon string) error { return h.Signal(daemon, syscall.SIGSTOP) }

// Continue thaws it.
func (h *Host) Continue(daemon string) error { return h.Signal(daemon, syscall.SIGCONT) }

// Restart kills a daemon and starts it again.
func (h *Host) Restart(daemon string) error {
	if err := h.Kill(daemon); err != nil {
		return err
	}
	return h.Start(daemon)
}

// LinkDown has the network lose all that the host sends or is sent. Neither end of a
// connection is told: it is silent.
func (h *Host) LinkDown() error {
	return h.cluster.onSwitch("ip", "link", "set", h.Name, "nomaster")
}

// LinkUp plugs the host in again.
func (h *Host) LinkUp() error {
	return h.cluster.onSwitch("ip", "link", "set", h.Name, "master", "br0")
}

// LoseTo has the network lose what the host sends to another, and nothing that
// it is sent.
func (h *Host) LoseTo(other *Host) error {
	const unused = "02:00:00:00:00:01" // no host has that address
	return h.neighbour("replace", other.IP, "lladdr", unused, "dev", "eth0", "nud", "permanent")
}

// LoseNothing undoes LoseTo.
func (h *Host) LoseNothing() error {
	return h.neighbour("flush", "dev", "eth0", "nud", "permanent")
}

func (h *Host) neighbour(args ...string) error {
	out, err := h.Command(context.Background(), "ip", append([]string{"neighbour"}, args...)...).CombinedOutput()
	if err != nil {
		return fmt.Errorf("change who %s can send to: %w: %s", h.Name, err, out)
	}
	return nil
}

// LinkRate limits each direction of the host's link to rate bytes a second; 0 is no
// limit.
func (h *Host) LinkRate(rate int64) error {
	out, err := h.Command(context.Background(), "tc", shape("eth0", rate)...).CombinedOutput()
	if err != nil && !strings.Contains(string(out), noShape) {
		return fmt.Errorf("limit the link of %s: %w: %s", h.Name, err, out)
	}
	return h.cluster.onSwitch("tc", shape(h.Name, rate)...)
}

// noShape is what tc(8) says when there is no limit to take away.
const noShape = "Cannot delete qdisc with handle of zero"

// shape are the words for tc(8). The bucket holds 10 ms of the rate, but some
// large packets at least.
func shape(device string, rate int64) []string {
	if rate == 0 {
		return []string{"qdisc", "del", "dev", device, "root"}
	}
	return []string{"qdisc", "replace", "dev", device, "root", "tbf",
		"rate", fmt.Sprintf("%dbps", rate), "burst", fmt.Sprint(max(rate/100, 256<<10)), "latency", "50ms"}
}

// onSwitch runs a command where the switch is that the hosts are plugged into.
func (c *layout) onSwitch(name string, args ...string) error {
	out, err := command(context.Background(), c.site, c.site.Pid, os.TempDir(), name, args...).CombinedOutput()
	if err != nil && !strings.Contains(string(out), noShape) {
		return fmt.Errorf("run %s %s: %w: %s", name, strings.Join(args, " "), err, out)
	}
	return nil
}

// CorruptReplica flips a bit of the first byte of a block's replica on the
// host.
func (h *Host) CorruptReplica(block uint64) error { return h.CorruptReplicaAt(block, 0) }

// CorruptReplicaAt flips a bit of the byte at off; doing so again mends it.
func (h *Host) CorruptReplicaAt(block uint64, off int64) error {
	file, err := h.replica(block)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	var b [1]byte
	if _, err := f.ReadAt(b[:], off); err != nil {
		return err
	}
	b[0] ^= 1
	_, err = f.WriteAt(b[:], off)
	return err
}

// TruncateReplica cuts a block's replica on the host to size bytes; its datanode
// believes that it has them all.
func (h *Host) TruncateReplica(block uint64, size int64) error {
	file, err := h.replica(block)
	if err != nil {
		return err
	}
	return os.Truncate(file, size)
}

// DeleteReplica removes a block's replica from the host; its datanode is the
// last to know.
func (h *Host) DeleteReplica(block uint64) error {
	file, err := h.replica(block)
	if err != nil {
		return err
	}
	return os.Remove(file)
}

// Sums is the file on the host that has the checksums of a block's replica, and
// a head of seven bytes: a version of two, a kind, and how many bytes have a
// checksum together in four. Its datanode looks at it for each read alone, so
// that a test may damage or remove it.
func (h *Host) Sums(block uint64) (string, error) {
	file, err := h.replica(block)
	if err != nil {
		return "", err
	}
	found, err := filepath.Glob(file + "_*.meta")
	if err == nil && len(found) != 1 {
		err = fmt.Errorf("%d files of checksums for block %d on host %s", len(found), int64(block), h.Name)
	}
	if err != nil {
		return "", err
	}
	return found[0], nil
}

// HasReplica says whether the host has a replica of a block.
func (h *Host) HasReplica(block uint64) bool {
	_, err := h.replica(block)
	return err == nil
}

// replica finds the file of a block on the host's disk.
func (h *Host) replica(block uint64) (string, error) {
	data := filepath.Join(h.cluster.site.HostDir(h.Name), "data")
	name := fmt.Sprintf("blk_%d", int64(block))
	var found string
	err := filepath.WalkDir(data, func(path string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == name {
			found = path
			return fs.SkipAll
		}
		return nil // a file that went away meanwhile
	})
	if err == nil && found == "" {
		err = fmt.Errorf("no replica of block %d on host %s", int64(block), h.Name)
	}
	return found, err
}
