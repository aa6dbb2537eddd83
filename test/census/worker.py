"""A map worker that may be killed at any moment, as may be the daemon below it. It goes
over the maps of a stage until all are committed, says whose attempt it saw of each, and
ends with an error if one that was committed is not there, whole, ever after."""
import errno, mmap, os, random, signal, struct, sys, time

stage, maps, parts, seed, slot, life = sys.argv[1], *map(int, sys.argv[2:])
random.seed(seed * 1000003 + slot * 1009 + life)
# The kernel answers EIO for a request that a daemon was reading when it was killed.
passing = {errno.EIO, errno.ENOTCONN, errno.ECONNABORTED, errno.EHOSTUNREACH, errno.ETIMEDOUT, errno.EINTR, errno.ENOENT, errno.EBUSY}
record = struct.Struct("<IIII")
tries = 0


def count(m, p):
    if m % 11 == 3:
        return 0
    if m % 7 == 5:
        return 4000 if p == m % parts else 0
    return (m * 7 + p * 13) % 5 * (2000 if m % 8 == 1 else 60)


def content(m, who):
    return [b"".join(record.pack(m, who, p, n) for n in range(count(m, p))) for p in range(parts)]


def patiently(what, do):
    end = time.monotonic() + 400
    while True:
        try:
            return do()
        except OSError as e:
            if e.errno not in passing or time.monotonic() > end:
                sys.exit(f"{what}: {e}")
        time.sleep(0.02)


def perhaps_die():
    if random.random() < 0.02:
        os.kill(os.getpid(), signal.SIGKILL)


def write(name, data):
    fd = os.open(name, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        if data and random.random() < 0.2:
            os.ftruncate(fd, len(data))
            with mmap.mmap(fd, len(data)) as to:
                half = len(data) // 2
                to[:half] = data[:half]
                perhaps_die()
                to[half:] = data[half:]
            return
        while data:
            n = os.write(fd, data[:random.randint(1, 1 << 20)])
            data = data[n:]
            perhaps_die()
    finally:
        os.close(fd)


def attempt(m, who, name):
    pieces = content(m, who)
    ends = [0]
    for piece in pieces:
        ends.append(ends[-1] + len(piece))
    write(name, b"".join(pieces))
    write(name + ".idx", struct.pack(f"<{parts + 1}Q", *ends))
    perhaps_die()


def commit(m):
    """One attempt, until it is known what became of it."""
    global tries
    tries += 1
    name = f"{stage}/.map-{m:06d}.{slot * 3 + tries % 3}"
    who = (slot << 20) + (life << 12) + tries
    to = f"{stage}/map-{m:06d}"
    for _ in range(200):
        try:
            attempt(m, who, name)
        except OSError as e:
            if e.errno not in passing:
                sys.exit(f"write {name}: {e}")
            if e.errno != errno.EBUSY:  # else it was whole, and its worker was killed in the commit
                time.sleep(0.05)
                continue
        for _ in range(200):
            try:
                os.rename(name, to)
                return
            except OSError as e:
                if e.errno not in passing:
                    sys.exit(f"rename {name}: {e}")
                if e.errno == errno.ENOENT:
                    break
            time.sleep(0.05)
        if os.path.exists(to):
            return
        time.sleep(0.05)
    sys.exit(f"map {m} cannot be committed")


def saw(m):
    """Whose attempt has won. All of it has to be there."""
    def read():
        with open(f"{stage}/map-{m:06d}", "rb") as f:
            return f.read()
    data = patiently(f"read map {m}", read)
    who = record.unpack_from(data)[1] if data else 0
    if data != b"".join(content(m, who)):
        sys.exit(f"map {m} has other bytes than attempt {who} wrote")
    print("saw", m, who, flush=True)


todo = list(range(maps))
while todo:
    m = random.choice(todo)
    if not os.path.exists(f"{stage}/map-{m:06d}") or random.random() < 0.1:
        commit(m)
    saw(m)
    todo.remove(m)
