package system_test

import "testing"

// A reader that opens one part does not wait for all that another job has opened at once before.
func TestPartsOfTwoJobs(t *testing.T) {
	t.Parallel()
	n := newNode(t).startPool("--ram", "2GiB", "--pool-ram", "1GiB")
	r := command(t, "python3", "-c", `
import os, queue, random, sys, threading
shuffle = sys.argv[1]
lines = "".join(f"{random.getrandbits(64):016x} a line of the job\n" for _ in range(150000))
def stage(job, maps, parts, bytes):
    path = f"{shuffle}/{job}/sorted"
    os.makedirs(path)
    with open(f"{path}/spec", "w") as f:
        f.write(f"maps={maps} parts={parts} copies=1 record=line key=1 sort=key")
    for m in range(maps):
        name = f"{path}/.map-{m:06d}.0"
        with open(name, "w") as f:
            f.write(lines[:bytes])
        os.rename(name, f"{path}/map-{m:06d}")
    return path
opened = queue.Queue()
def read(path, part):
    with open(f"{path}/part-{part:06d}", "rb") as f:
        while f.read(1 << 20):
            pass
    opened.put(path)
many, one = stage("many", 60, 64, len(lines)), stage("one", 1, 1, 3500)
opens = [threading.Thread(target=read, args=(many, part)) for part in range(64)]
for open_of in opens:
    open_of.start()
assert opened.get() == many
opens.append(threading.Thread(target=read, args=(one, 0)))
opens[-1].start()
before = 1
while opened.get() == many:
    before += 1
for open_of in opens:
    open_of.join()
assert before < 40, f"{before} parts of 64 came before the one of another job"
print(before)
`, n.mount+"/shuffle")
	if r.code != 0 {
		t.Error(r)
	}
	t.Log(r.out)
}
