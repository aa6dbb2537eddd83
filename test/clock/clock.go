package clock

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

const (
	stopTime = time.Minute // for a process to have a vDSO, and to be stopped outside of it
	pause    = time.Millisecond
)

// Jump sets the clock of a process ahead of the machine's by whole seconds, or
// behind. Zero sets it right. The caller must have started it.
func Jump(pid int, by time.Duration) error {
	if by%time.Second != 0 {
		return fmt.Errorf("clock of process %d: it jumps by whole seconds, not by %v", pid, by)
	}
	text, err := clockGettime(int64(by / time.Second))
	if err != nil {
		return fmt.Errorf("clock of process %d: %w", pid, err)
	}
	if err := replace(pid, text); err != nil {
		return fmt.Errorf("clock of process %d: %w", pid, err)
	}
	return nil
}

func replace(pid int, text []byte) (err error) {
	v, err := find(pid)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, unix.Kill(pid, unix.SIGCONT)) }()
	mem, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", pid), os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer mem.Close()
	at, there, err := v.clockGettime(mem, len(text))
	if err != nil {
		return err
	}
	if err := v.stop(isOurs(there)); err != nil {
		return err
	}
	if _, err := mem.WriteAt(text, at); err != nil {
		return fmt.Errorf("write its vDSO: %w", err)
	}
	return nil
}

// isOurs reports whether the text is that of a clock that jumped before. Then only
// the seconds in it change, as a thread may be running it: one that reads the time
// in a loop is hardly ever elsewhere.
func isOurs(text []byte) bool {
	zero, _ := clockGettime(0)
	ones, _ := clockGettime(-1)
	for i := range zero {
		if zero[i] == ones[i] && text[i] != zero[i] {
			return false
		}
	}
	return true
}

// A vdso is where a process has its own.
type vdso struct {
	pid        int
	start, end uint64
}

// find waits for it: a process that has only just begun has none yet.
func find(pid int) (v vdso, err error) {
	v.pid = pid
	for end := time.Now().Add(stopTime); time.Now().Before(end); time.Sleep(pause) {
		maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", pid))
		if err != nil {
			return v, err
		}
		for line := range strings.Lines(string(maps)) {
			if strings.HasSuffix(line, "[vdso]\n") {
				_, err := fmt.Sscanf(line, "%x-%x", &v.start, &v.end)
				return v, err
			}
		}
	}
	return v, errors.New("it has no vDSO: was the kernel started with vdso=0?")
}

// stop stops the process, where none of its threads is about to execute what is
// going to be written over unless that may be anywhere.
func (v vdso) stop(anywhere bool) error {
	for end := time.Now().Add(stopTime); ; {
		if err := unix.Kill(v.pid, unix.SIGSTOP); err != nil {
			return err
		}
		running, within, err := v.threads()
		switch {
		case err != nil:
			return err
		case !running && (anywhere || !within):
			return nil
		case time.Now().After(end):
			return fmt.Errorf("its threads do not stop outside of the vDSO within %v", stopTime)
		case !running:
			if err := unix.Kill(v.pid, unix.SIGCONT); err != nil {
				return err
			}
		}
		time.Sleep(pause)
	}
}

// threads finds out whether any thread is not stopped yet, or is within the vDSO.
func (v vdso) threads() (running, within bool, err error) {
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", v.pid))
	if err != nil || len(files) == 0 {
		return false, false, errors.Join(err, errors.New("it has no threads: has it ended?"))
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, unix.ESRCH) {
			running = true // until just now: look again
			continue
		}
		if err != nil {
			return false, false, err
		}
		stat, err := os.ReadFile(filepath.Join(filepath.Dir(file), "stat"))
		if err != nil {
			running = true
			continue
		}
		// The state follows the name, which may have anything in it.
		if i := bytes.LastIndexByte(stat, ')'); i < 0 || !bytes.HasPrefix(stat[i+1:], []byte(" T ")) {
			running = true
			continue
		}
		fields := strings.Fields(string(text)) // "running", or a call or -1, ... its stack and where it is
		at, err := strconv.ParseUint(fields[len(fields)-1], 0, 64)
		if err != nil {
			running = true
			continue
		}
		within = within || v.start <= at && at < v.end
	}
	return running, within, nil
}

// clockGettime is where that is, and the first n bytes of it.
func (v vdso) clockGettime(mem *os.File, n int) (at int64, text []byte, err error) {
	image := make([]byte, v.end-v.start)
	if _, err := mem.ReadAt(image, int64(v.start)); err != nil {
		return 0, nil, fmt.Errorf("read its vDSO: %w", err)
	}
	from, size, err := symbol(image)
	if err != nil {
		return 0, nil, err
	}
	if size < uint64(n) {
		return 0, nil, fmt.Errorf("no room in its vDSO: clock_gettime has %d bytes, %d are needed", size, n)
	}
	return int64(v.start + from), image[from : from+uint64(n)], nil
}

// symbol is where clock_gettime is, and how long.
func symbol(image []byte) (at, size uint64, err error) {
	const name = "__vdso_clock_gettime"
	f, err := elf.NewFile(bytes.NewReader(image))
	if err != nil {
		return 0, 0, fmt.Errorf("its vDSO: %w", err)
	}
	all, err := f.DynamicSymbols()
	if err != nil {
		return 0, 0, fmt.Errorf("its vDSO: %w", err)
	}
	var base uint64
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			base = p.Vaddr - p.Off
		}
	}
	for _, s := range all {
		if s.Name == name && s.Value-base < uint64(len(image)) {
			return s.Value - base, s.Size, nil
		}
	}
	return 0, 0, fmt.Errorf("its vDSO has no %s", name)
}
