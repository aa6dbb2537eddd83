package main

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

func cores() float64 { return float64(runtime.NumCPU()) }

// busySeconds is how long the machine's cores have been busy with processes that are
// not nice.
func busySeconds() float64 {
	text, err := os.ReadFile("/proc/stat")
	check(err)
	var user, nice, system, idle, wait, irq, soft float64
	_, err = fmt.Sscanf(string(text), "cpu %f %f %f %f %f %f %f", &user, &nice, &system, &idle, &wait, &irq, &soft)
	check(err)
	return (user + system + irq + soft) / 100 // USER_HZ
}

// nice has a process leave the processor to others, with all of its threads; those
// that they start do so too.
func nice(pid, by int) {
	for _, task := range glob(fmt.Sprintf("/proc/%d/task/*", pid)) {
		thread, err := strconv.Atoi(filepath.Base(task))
		check(err)
		check(unix.Setpriority(unix.PRIO_PROCESS, thread, by))
	}
}

// processor is how long a process has had a core so far, in seconds.
func processor(pid int) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	check(err)
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	user, err := strconv.ParseFloat(fields[11], 64)
	check(err)
	system, err := strconv.ParseFloat(fields[12], 64)
	check(err)
	return (user + system) / 100 // USER_HZ
}

// ofProcess is a line of what the kernel says of a process, in MiB.
func ofProcess(pid int, key string) float64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	check(err)
	for line := range strings.Lines(string(text)) {
		var kib float64
		if name, rest, _ := strings.Cut(line, ":"); name == key {
			_, err := fmt.Sscan(rest, &kib)
			check(err)
			return kib / 1024
		}
	}
	check(fmt.Errorf("no %s of process %d", key, pid))
	return 0
}
