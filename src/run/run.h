/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs run: its four processes, and what they share. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

/*
 *   front     what the user started: the terminal, signals, the exit status
 *     |
 *   keeper    makes the place, cleans up: every run ends here
 *     |  `-- daemon   opens the sources, mounts, serves; or is about to
 *   escort    parent of the command, in the user's session
 *     |
 *   command   and whatever it starts
 *
 * If one of them is killed, the process above it gets all that is left as descendants,
 * because front, keeper and escort are subreapers.  A process that the command started
 * cannot get out of the tree, not by leaving its group or session, not by changing its
 * environment.  So no process has to be searched for.
 *
 *	killed             noticed by         and then
 *	front              keeper (socket)    kills the command's tree, cleans
 *	keeper             front (socket)     takes over its children: the run goes on,
 *	                                      and front cleans at the end
 *	daemon             keeper (wait)      front reports it, ends the command
 *	escort             front (socket)     keeper ends the tree, cleans
 *	group, session     keeper             is in neither; then as for front
 *	front and keeper   escort, daemon     each kills, unmounts, removes what exists
 *	                   (pipe)
 *	all at once        the next run       finds the place without a lock
 *
 * The keeper is in a session of its own, so that a signal that kills the user's session
 * does not reach it.  It forks the escort first, which stays in that session: the parent
 * of the command has to be in the command's session, or the kernel takes the command's
 * group for an orphaned one, which cannot be stopped.  All of them are small; the process
 * that takes memory and may crash is the daemon.  They notice each other's end by an end
 * of file: no clock, no polling, and no pid that may have been given to another process.
 *
 * fusermount3's auto_unmount is not used.  It works, but it is a fifth process that
 * cannot be told from what the command left behind, and it helps only where all four
 * processes are killed and it is not.
 */
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "app/cli.h"

/* State in memory that all of them share, so that each can clean up what the others
 * made. */
struct run_shared {
	char dir[PATH_MAX - 16]; /* "" until it is about to be made */
	char point[PATH_MAX];    /* the mount point, in dir */
	char view[PATH_MAX];     /* the path that the command gets */
	volatile bool made;      /* this run has made dir */
	dev_t dev;               /* device and inode of dir */
	ino_t ino;
	/* Process ids, and the process group of the daemon and its own helpers; 0 if there
	 * is none, or if its end was noticed. */
	volatile pid_t group;
	volatile pid_t daemon, escort;
	volatile bool ready;  /* the daemon reported that the data is there */
	volatile bool staged; /* the data is there as files, not as a mount */
};

/* What waitpid() has reported of the children. */
struct run_children {
	pid_t leader; /* leader of the command's group; 0: none */
	bool leader_ended, daemon_ended;
	int leader_status, daemon_status;
	/* the signal that stopped the leader, SIGCONT if it goes on, or 0 */
	int stopped;
};

struct run {
	const struct command *c;
	struct settings *s;
	char **sources;
	size_t n_sources;
	struct run_shared *shared;
	struct run_children children;
	pid_t pid; /* pid of front */
	/* children that front had before the run's own (after exec in a shell) */
	pid_t *strangers;
	size_t n_strangers;
	/* signal mask and actions that the run was started with, for the command */
	sigset_t mask;
	struct sigaction actions[NSIG];
	/* sockets: [0] is the end of front, [1] that of the other; -1: closed here */
	int life[2], control[2];
	int alive[2]; /* pipe: front and keeper hold the end for writing */
	int lock;     /* file descriptor that holds the lock of the place */
};

enum run_message_kind {
	/* From keeper to front. */
	RUN_READY,
	RUN_FAILED,       /* value: exit code; the error was reported */
	RUN_DAEMON_ENDED, /* value: wait status */
	RUN_DONE,         /* value: number of things that are left */
	/* From front to keeper. */
	RUN_FINISH,
	/* From front to escort. */
	RUN_START,
	RUN_GO,
	RUN_SIGNAL, /* value: signal number */
	RUN_END,
	/* From escort to front. */
	RUN_STARTED, /* value: process group */
	RUN_NO_EXEC, /* value: errno */
	RUN_STOPPED, /* value: signal number */
	RUN_CONTINUED,
	RUN_ENDED /* value: wait status */
};
struct run_message {
	int kind, value;
};
/* Send a message.  Errors are ignored: a peer that is gone is noticed when receiving. */
void run_send(int fd, enum run_message_kind kind, int value);
/* Receive a message; blocks until there is one.  Returns false if the peer is gone. */
bool run_receive(int fd, struct run_message *m);

/* Block all signals, as the helpers need it, so that nothing but SIGKILL ends them; save
 * mask and actions in `r`. */
void run_signals_block(struct run *r);
/* Restore mask and actions, in the child that becomes the command. */
void run_signals_restore(const struct run *r);
/* Replace standard input and output by /dev/null: they are for the command alone. */
void run_release_stdio(void);
/* Wait for children, without blocking; note the results in r->children. */
void run_reap(struct run *r);

/* The processes.  Each returns the status to exit with. */
int run_front(struct run *r);
int run_keeper(struct run *r);
/* The escort is killed when everything is cleaned up; until then it can take over. */
_Noreturn void run_escort(struct run *r);
int run_daemon(struct run *r, int report);

/*
 * End every descendant except the escort, the daemon, strangers and what is below these
 * two: SIGTERM, and SIGKILL after `grace` milliseconds (0: at once).  Returns when none
 * is left or after some seconds, with the number of those that are left: processes that
 * are stuck in the kernel, or that this user may not kill.  Reaps children.
 */
unsigned run_tree_end(struct run *r, unsigned grace);
/* Note the children that this process has now, as strangers: the run leaves them
 * alone. */
void run_tree_begin(struct run *r);
/* Return how many descendants are alive, apart from those that run_tree_end leaves
 * alone. */
unsigned run_tree_count(struct run *r);
/* Return true if the process is alive; a zombie is not. */
bool run_process_lives(pid_t pid);
/* Wait for up to 2 seconds until a dying process is gone: when its sockets are closed,
 * its locks may still be held. */
void run_wait_gone(pid_t pid);
/* Return true if a process of this group is alive. */
bool run_group_lives(pid_t group);

/* End descendants, unmount, remove the place, end the daemon.  Used at the regular end,
 * and by a process that takes over; may be called twice.  The escort is left, so that it
 * can take over.  `grace` is in milliseconds.  Returns how many things are left. */
unsigned run_clean(struct run *r, int grace);
/* End the escort, when nothing is left to be cleaned up. */
void run_escort_end(struct run *r);

/* Choose and make the place: sets r->shared->dir, r->shared->point and r->lock.  Returns
 * 0, or -errno with a sentence. */
int run_place_make(struct run *r, struct error *err);
/* Unmount and remove the place; return false, with a sentence, if that is not possible.
 * Waits for up to half a second. */
bool run_place_remove(struct run_shared *p, struct error *err);
/* Remove places of this user that no process holds: of runs all of whose processes were
 * killed at once.  Mounts made outside cannot be removed in a mount namespace of one's
 * own. */
void run_place_sweep(void);
/* Return true if `name` is a name of a place of user `uid`. */
bool run_place_name(const char *name, uid_t uid);

/* Move this process into a mount namespace of its own, where mounting is permitted; it
 * keeps its user and group.  Returns 0, or -errno with a sentence. */
int run_private_enter(struct error *err);

/* Return the command's arguments with "{}" replaced by `view`; NULL if memory is short.
 * The caller does not free them. */
char **run_command_args(char *const *argv, const char *view);
/* Look for the program as execvp() will: 0, ENOENT or EACCES. */
int run_command_find(const char *name);
/* Print why the program cannot be executed; return the exit status, 126 or 127. */
int run_command_failed(const struct command *c, const char *name, int error);

#endif
