package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// The two ends of the link.
const (
	hereIP  = "10.78.0.1"
	thereIP = "10.78.0.2"
	port    = "7400"
)

// An end is a process of this program on a network of its own. It answers
// orders, a line each.
type end struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func start(ctx context.Context, role string) (*end, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, self, append([]string{"-role", role}, os.Args[1:]...)...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start on a network of its own: %w (run as root)", err)
	}
	return &end{cmd, in, bufio.NewScanner(out)}, nil
}

// end ends the process, which goes when it has no orders to come.
func (e *end) end() {
	e.in.Close()
	_ = e.cmd.Wait() // it has said what it had to say
}

func (e *end) order(what string) (answer string, err error) {
	if _, err := fmt.Fprintln(e.in, what); err != nil {
		return "", err
	}
	if !e.out.Scan() {
		return "", errors.Join(fmt.Errorf("no answer to %q", what), e.out.Err())
	}
	return e.out.Text(), nil
}

// command is a program on the network of the end.
func (e *end) command(ctx context.Context, name string, args ...string) *exec.Cmd {
	return exec.CommandContext(ctx, "nsenter", append([]string{"-t", strconv.Itoa(e.cmd.Process.Pid), "-n", name}, args...)...)
}

// processor is the processor time of the process so far, in seconds.
func (e *end) processor() float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.ParseFloat(fields[11], 64)
	system, _ := strconv.ParseFloat(fields[12], 64)
	return (user + system) / 100 // USER_HZ
}

// join lays a link between two networks, with the same limit both ways.
func join(ctx context.Context, there, here *end) error {
	pid := func(e *end) string { return strconv.Itoa(e.cmd.Process.Pid) }
	err := run(exec.CommandContext(ctx, "ip", "link", "add", "name", "wire", "netns", pid(here), "type", "veth", "peer", "name", "wire", "netns", pid(there)))
	if err != nil {
		return err
	}
	for ip, e := range map[string]*end{hereIP: here, thereIP: there} {
		for _, args := range [][]string{
			{"ip", "addr", "add", ip + "/24", "dev", "wire"},
			{"ip", "link", "set", "lo", "up"},
			{"ip", "link", "set", "wire", "up"},
			// The queue is as long as a switch's: 2 ms.
			{"tc", "qdisc", "add", "dev", "wire", "root", "tbf", "rate", *rate, "burst", "256kb", "limit", "512kb"},
		} {
			if err := run(e.command(ctx, args[0], args[1:]...)); err != nil {
				return err
			}
		}
	}
	return nil
}

// received reads the report of iperf3.
func received(report []byte) (float64, error) {
	var r struct {
		End struct {
			Received struct {
				Rate float64 `json:"bits_per_second"`
			} `json:"sum_received"`
		} `json:"end"`
		Error string `json:"error"`
	}
	if err := json.Unmarshal(report, &r); err != nil {
		return 0, err
	}
	if r.Error != "" || r.End.Received.Rate == 0 {
		return 0, fmt.Errorf("iperf3: %q", r.Error)
	}
	return r.End.Received.Rate / 8, nil
}
