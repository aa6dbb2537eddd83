package mounts

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// startTime is when a process began, in clock ticks since boot.
func startTime(pid int) (uint64, error) {
	fields, err := processStat(pid)
	if err != nil {
		return 0, err
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// processStat returns the fields of /proc/PID/stat from the third, the state,
// on. The second is the program's name, which may hold anything.
func processStat(pid int) ([]string, error) {
	return statFields(fmt.Sprintf("/proc/%d/stat", pid))
}

func statFields(file string) ([]string, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 29 {
		return nil, fmt.Errorf("read %s: %d fields", file, len(fields))
	}
	return fields, nil
}
