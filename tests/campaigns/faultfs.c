/*
 * Injects faults into a process that has this library preloaded.
 *
 * Counts and logs every call that changes a file in one directory. Call number `at`, or every call
 * from there on, fails in a chosen way. Before faultfs_arm all calls pass.
 *
 * Other kinds refuse, anywhere, call number `at` for memory, or for a thread or a process all calls
 * from there on. FAULTFS="KIND AT" in the environment arms these kinds at the start of a process.
 *
 * Refuses range locks on files in the directory, as macOS and Linux over NFS do while the process
 * holds its own lock on the whole file. Not with the other kinds: DuckDB needs its locks.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The numbers of Kind in faultfs.py. */
enum { NONE, KILL, TORN, SHORT, ENOSPC_ONCE, ENOSPC_ON, EIO_ONCE, EIO_ON, FSYNC_ON, LOST,
       NO_THREAD, NO_PROCESS, NO_MEMORY };

static char directory[PATH_MAX];
static int kind, at, log_to, count;

void faultfs_arm(const char *of, int the_kind, int the_call, int log)
{
	kind = the_kind;
	at = the_call;
	log_to = log;
	count = 0;
	snprintf(directory, sizeof directory, "%s", of);
}

__attribute__((constructor)) static void arm_from_environment(void)
{
	const char *given = getenv("FAULTFS");

	if (given)
		sscanf(given, "%d %d", &kind, &at);
}

static int is_inside(const char *path)
{
	size_t length = strlen(directory);

	return length && !strncmp(path, directory, length) && (!path[length] || path[length] == '/');
}

static const char *get_path(int descriptor)
{
	static char path[PATH_MAX];
	char link[64];
	ssize_t length;

	snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
	length = readlink(link, path, sizeof path - 1);
	path[length < 0 ? 0 : length] = 0;
	return length > 0 && path[0] == '/' ? path : "/";
}

static void log_call(const char *outcome, const char *call, const char *path)
{
	char line[PATH_MAX + 64];
	int length = snprintf(line, sizeof line, "%s %s %s\n", outcome, call, path);

	syscall(SYS_write, log_to, line, length);
}

/* Count a call. Return 0 to let it pass, an error number, or -1 to write half of it or nothing. */
static int fault(const char *call, const char *path)
{
	int is_write = strstr(call, "write") != NULL, is_flush = strstr(call, "sync") != NULL;
	int error = 0;

	if (!is_inside(path))
		return 0;
	count++;
	if (kind == KILL && count == at) {
		log_call("killed", call, path);
		kill(getpid(), SIGKILL);
	}
	if ((kind == TORN && count == at && is_write) || (kind == SHORT && count >= at && is_write)) {
		log_call("half", call, path);
		return -1;
	}
	if (kind == LOST && count == at && is_write) {
		log_call("lost", call, path);
		return -1;
	}
	/* Removing a file needs no space. */
	if ((kind == ENOSPC_ONCE && count == at) || (kind == ENOSPC_ON && count >= at))
		error = strcmp(call, "unlink") ? ENOSPC : 0;
	if ((kind == EIO_ONCE && count == at) || (kind == EIO_ON && count >= at))
		error = EIO;
	if (kind == FSYNC_ON && count >= at && is_flush)
		error = EIO;
	log_call(error ? "failed" : "done", call, path);
	return error;
}

#define REAL(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

#define FAIL_OR(call, path, real)                                                                  \
	do {                                                                                       \
		int error = fault(call, path);                                                     \
		if (error > 0) {                                                                   \
			errno = error;                                                             \
			return -1;                                                                 \
		}                                                                                  \
		return real;                                                                       \
	} while (0)

/* Half of a write is at least one byte. A torn write kills the process. */
#define WRITE_OR_HALF(call, descriptor, size, real)                                                \
	do {                                                                                       \
		int error = fault(call, get_path(descriptor));                                      \
		ssize_t written;                                                                   \
		if (error > 0) {                                                                   \
			errno = error;                                                             \
			return -1;                                                                 \
		}                                                                                  \
		if (error < 0 && kind == LOST)                                                     \
			return size;                                                               \
		if (error < 0 && size > 1)                                                         \
			size /= 2;                                                                 \
		written = real;                                                                    \
		if (error < 0 && kind == TORN)                                                     \
			kill(getpid(), SIGKILL);                                                   \
		return written;                                                                    \
	} while (0)

#define MODE_OF(flags)                                                                             \
	mode_t mode = 0;                                                                           \
	if (flags & O_CREAT) {                                                                     \
		va_list rest;                                                                      \
		va_start(rest, flags);                                                             \
		mode = va_arg(rest, mode_t);                                                       \
		va_end(rest);                                                                      \
	}

#define CHANGES(flags) ((flags) & (O_CREAT | O_TRUNC | O_WRONLY | O_RDWR))

#define OPEN(name)                                                                                 \
	int name(const char *path, int flags, ...)                                                 \
	{                                                                                          \
		MODE_OF(flags)                                                                     \
		if (!CHANGES(flags))                                                               \
			return REAL(name)(path, flags, mode);                                      \
		FAIL_OR("open", path, REAL(name)(path, flags, mode));                              \
	}

#define OPENAT(name)                                                                               \
	int name(int from, const char *path, int flags, ...)                                       \
	{                                                                                          \
		MODE_OF(flags)                                                                     \
		if (!CHANGES(flags))                                                               \
			return REAL(name)(from, path, flags, mode);                                \
		FAIL_OR("open", path, REAL(name)(from, path, flags, mode));                        \
	}

#define PWRITE(name, offset_t)                                                                     \
	ssize_t name(int descriptor, const void *bytes, size_t size, offset_t offset)              \
	{                                                                                          \
		WRITE_OR_HALF("pwrite", descriptor, size,                                          \
			      REAL(name)(descriptor, bytes, size, offset));                        \
	}

#define OF_DESCRIPTOR(name, call, parameters, arguments)                                           \
	int name parameters { FAIL_OR(call, get_path(descriptor), REAL(name) arguments); }

#define OF_PATH(name, call, path, parameters, arguments)                                           \
	int name parameters { FAIL_OR(call, path, REAL(name) arguments); }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

ssize_t write(int descriptor, const void *bytes, size_t size)
{
	WRITE_OR_HALF("write", descriptor, size, REAL(write)(descriptor, bytes, size));
}
ssize_t sendfile(int descriptor, int from, off_t *offset, size_t size)
{
	WRITE_OR_HALF("write", descriptor, size, REAL(sendfile)(descriptor, from, offset, size));
}

ssize_t sendfile64(int descriptor, int from, off64_t *offset, size_t size)
{
	WRITE_OR_HALF("write", descriptor, size, REAL(sendfile64)(descriptor, from, offset, size));
}

ssize_t copy_file_range(int from, off64_t *from_at, int descriptor, off64_t *at_there, size_t size,
			unsigned flags)
{
	WRITE_OR_HALF("copy_by_pwrite", descriptor, size,
		      REAL(copy_file_range)(from, from_at, descriptor, at_there, size, flags));
}

PWRITE(pwrite, off_t)
PWRITE(pwrite64, off64_t)

OF_DESCRIPTOR(ftruncate, "ftruncate", (int descriptor, off_t size), (descriptor, size))
OF_DESCRIPTOR(ftruncate64, "ftruncate", (int descriptor, off64_t size), (descriptor, size))
OF_DESCRIPTOR(fchmod, "fchmod", (int descriptor, mode_t mode), (descriptor, mode))
OF_DESCRIPTOR(fsync, "fsync", (int descriptor), (descriptor))
OF_DESCRIPTOR(fdatasync, "fdatasync", (int descriptor), (descriptor))

OF_PATH(rename, "rename", to, (const char *from, const char *to), (from, to))
OF_PATH(renameat, "rename", to, (int from_in, const char *from, int to_in, const char *to),
	(from_in, from, to_in, to))
OF_PATH(link, "link", to, (const char *from, const char *to), (from, to))
OF_PATH(linkat, "link", to,
	(int from_in, const char *from, int to_in, const char *to, int flags),
	(from_in, from, to_in, to, flags))
OF_PATH(unlink, "unlink", path, (const char *path), (path))
OF_PATH(unlinkat, "unlink", path, (int in, const char *path, int flags), (in, path, flags))

#define FCNTL(name)                                                                                \
	int name(int descriptor, int command, ...)                                                 \
	{                                                                                          \
		va_list rest;                                                                      \
		void *argument;                                                                    \
		va_start(rest, command);                                                           \
		argument = va_arg(rest, void *);                                                   \
		va_end(rest);                                                                      \
		if (kind < NO_THREAD && (command == F_SETLK || command == F_SETLKW) &&             \
		    ((struct flock *)argument)->l_type != F_UNLCK &&                               \
		    is_inside(get_path(descriptor))) {                                            \
			errno = EPERM; /* after EAGAIN, SQLite would wait */                        \
			return -1;                                                                 \
		}                                                                                  \
		return REAL(name)(descriptor, command, argument);                                  \
	}

FCNTL(fcntl)
FCNTL(fcntl64)

int faultfs_count(void)
{
	return count;
}

static int refuses(int the_kind)
{
	int number;

	if (kind != the_kind)
		return 0;
	number = __atomic_add_fetch(&count, 1, __ATOMIC_RELAXED);
	return at && (kind == NO_MEMORY ? number == at : number >= at);
}

int pthread_create(pthread_t *thread, const pthread_attr_t *of, void *(*run)(void *), void *with)
{
	return refuses(NO_THREAD) ? EAGAIN : REAL(pthread_create)(thread, of, run, with);
}

#define PROCESS(name)                                                                              \
	pid_t name(void)                                                                           \
	{                                                                                          \
		if (!refuses(NO_PROCESS))                                                          \
			return REAL(fork)();                                                       \
		errno = EAGAIN;                                                                    \
		return -1;                                                                         \
	}

PROCESS(fork)
PROCESS(vfork) /* a wrapper can't return twice on the stack of its parent, so it forks */

/* dlsym may allocate. */
#define MEMORY(name, parameters, arguments)                                                        \
	extern void *__libc_##name parameters;                                                     \
	void *name parameters                                                                      \
	{                                                                                          \
		if (!refuses(NO_MEMORY))                                                           \
			return __libc_##name arguments;                                            \
		errno = ENOMEM;                                                                    \
		return NULL;                                                                       \
	}

MEMORY(malloc, (size_t size), (size))
MEMORY(calloc, (size_t number, size_t size), (number, size))
MEMORY(realloc, (void *from, size_t size), (from, size))
