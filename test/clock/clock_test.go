package clock_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"rankfs/test/clock"
)

// teller is set for a child that tells the time.
const teller = "RANKFS_TEST_TELLS_TIME"

func TestMain(m *testing.M) {
	if os.Getenv(teller) != "" {
		tell()
		return
	}
	os.Exit(m.Run())
}

// tell says, for each line that it is sent, what time it is, and how long it
// has been since the first in two ways. Some threads look at the clock all the
// time, as those of a daemon may just when it jumps.
func tell() {
	for range 2 {
		go func() {
			for !time.Now().IsZero() {
			}
		}()
	}
	start := time.Now()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		now := time.Now()
		fmt.Println(now.Unix(), int64(now.Sub(start)), int64(now.Round(0).Sub(start.Round(0))))
	}
}

// A clock jumps a day ahead and back, and behind. Time that has passed is the
// same throughout.
func TestJump(t *testing.T) {
	child := exec.Command(os.Args[0])
	child.Env = append(os.Environ(), teller+"=1")
	child.Stderr = os.Stderr
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	kill := time.AfterFunc(time.Minute, func() { child.Process.Kill() })
	defer kill.Stop()
	defer func() {
		in.Close()
		if err := child.Wait(); err != nil {
			t.Error(err)
		}
	}()
	answers, first := bufio.NewReader(out), time.Time{}
	var before int64
	const day = 24 * time.Hour
	for _, by := range []time.Duration{0, day, -day, time.Hour, 0, 40 * 365 * day, 0} {
		if err := clock.Jump(child.Process.Pid, by); err != nil {
			t.Fatal(err)
		}
		earliest := time.Now()
		fmt.Fprintln(in)
		line, err := answers.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		latest := time.Now()
		if first.IsZero() {
			first = earliest
		}
		var unix, passed, shown int64
		if _, err := fmt.Sscan(line, &unix, &passed, &shown); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		if unix < earliest.Add(by).Unix() || unix > latest.Add(by).Unix() {
			t.Errorf("%v ahead it says %d, at %d", by, unix, latest.Unix())
		}
		if passed < before || time.Duration(passed) > latest.Sub(first)+time.Minute {
			t.Errorf("%v ahead %v have passed, and before it were %v", by, time.Duration(passed), time.Duration(before))
		}
		if off := time.Duration(shown - passed).Round(time.Minute); off != by {
			t.Errorf("%v ahead its clock moved by %v more than time", by, off)
		}
		before = passed
	}
}

// sleeper is a process that does nothing until the test ends.
func sleeper(t *testing.T) (pid int) {
	t.Helper()
	child := exec.Command("sleep", "60")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		child.Process.Kill()
		child.Wait()
	})
	return child.Process.Pid
}

// The clocks of other processes, this one among them, stay as they are.
func TestNoOtherClockJumps(t *testing.T) {
	pid := sleeper(t)
	before := time.Now()
	if err := clock.Jump(pid, 1000*time.Hour); err != nil {
		t.Fatal(err)
	}
	if moved := time.Now().Round(0).Sub(before.Round(0)); moved > time.Hour {
		t.Errorf("the clock here moved by %v", moved)
	}
}

func TestRefusals(t *testing.T) {
	pid := sleeper(t)
	if err := clock.Jump(pid, time.Millisecond); err == nil || !strings.Contains(err.Error(), "whole seconds") {
		t.Errorf("by a millisecond: %v", err)
	}
	ended := exec.Command("true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	if err := clock.Jump(ended.Process.Pid, time.Second); err == nil {
		t.Error("a process that has ended has a clock")
	}
}
