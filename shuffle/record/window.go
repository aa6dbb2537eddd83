package record

// A Window is some bytes of a part: those from an offset on, as many as To takes.
type Window struct {
	Off int64
	To  []byte
}

func (w Window) end() int64 { return w.Off + int64(len(w.To)) }

// Windows are some of a part, by their offsets. They may overlap.
type Windows []Window

// Put puts bytes of the part that stand at an offset, and returns the windows that need
// bytes after them. It is to be called in the order of offsets.
func (all Windows) Put(at int64, b []byte) Windows {
	end := at + int64(len(b))
	for _, w := range all {
		if w.Off >= end {
			break
		}
		if from, to := max(w.Off, at), min(w.end(), end); from < to {
			copy(w.To[from-w.Off:], b[from-at:to-at])
		}
	}
	for len(all) > 0 && all[0].end() <= end {
		all = all[1:]
	}
	return all
}

// Touch reports whether a window has bytes that stand there.
func (all Windows) Touch(from, to int64) bool {
	for _, w := range all {
		if max(w.Off, from) < min(w.end(), to) {
			return true
		}
	}
	return false
}
