/* SPDX-License-Identifier: BSD-2-Clause */
/* tensorfs run: four processes, and what they share. */
#ifndef RUN_RUN_H
#define RUN_RUN_H

/*
 *     front     what the user started: the terminal, signals, the exit status
 *       |
 *     keeper    makes the place, cleans up: every run ends here
 *       |  `-- daemon   opens the sources, mounts, serves; or is about to
 *     escort    parent of the command, in the user's session
 *       |
 *     command   and whatever it starts
 *
 * Whoever is killed, the next one up has all that is left for descendants, for
 * front, keeper and escort are subreapers: nothing that the command started can
 * get out of the tree, not by leaving its group or session, not by changing its
 * environment.  Nobody has to be searched for.
 *
 *	killed             seen by            and then
 *	front              keeper (socket)    kills the command's tree, cleans
 *	keeper             front (socket)     takes over its children: the run goes on,
 *	                                      and front cleans in the end
 *	daemon             keeper (wait)      front says so, ends the command
 *	escort             front (socket)     keeper ends the tree, cleans
 *	group, session     keeper: it is in neither, as for front
 *	front and keeper   escort, daemon     each kills, unmounts, removes what is
 *	                   (pipe)             there
 *	all at once        the next run       finds the place without a lock
 *
 * The keeper is in a session of its own, so that what kills the user's does not
 * reach it.  It forks the escort first, which stays: the parent of the command
 * has to be in the command's session, or the kernel takes its group for an
 * orphaned one, which cannot be stopped.  All of them are small; what takes
 * memory and may crash is the daemon.  They find out about each other by ends of
 * file: no clock, no polling, and no pid that may have become another's.
 *
 * fusermount3's auto_unmount was left out: it works, but it is a fifth process,
 * not distinguishable from what the command left behind, and helps only where
 * all four of ours are killed and it is not.
 */
#include <limits.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "app/cli.h"

/* In memory that all of them see, so that heirs know what there is to clean. */
struct run_shared {
	char dir[PATH_MAX - 16]; /* "" until it is going to be made */
	char point[PATH_MAX];    /* in it; where the mount is */
	char view[PATH_MAX];     /* what the command is told */
	volatile bool made;      /* dir is ours, */
	dev_t dev;               /* and this one */
	ino_t ino;
	/* 0: none, or it was seen to end */
	volatile pid_t group; /* of the daemon and its own helpers */
	volatile pid_t daemon, escort;
	volatile bool ready;  /* the daemon said that the data is there */
	volatile bool staged; /* as files, not as a mount */
};

/* What the kernel's answers to wait were. */
struct run_children {
	pid_t leader; /* of the command's group; 0: none */
	bool leader_ended, daemon_ended;
	int leader_status, daemon_status;
	int stopped; /* the leader, by this signal; SIGCONT: it goes on; 0 */
};

struct run {
	const struct command *c;
	struct settings *s;
	char **sources;
	size_t n_sources;
	struct run_shared *shared;
	struct run_children children;
	pid_t pid; /* front's */
	/* front's children before it had any of ours (after exec in a shell) */
	pid_t *strangers;
	size_t n_strangers;
	/* as we were started, for the command */
	sigset_t mask;
	struct sigaction actions[NSIG];
	/* [0] is front's end, [1] the other's; -1: closed here */
	int life[2], control[2];
	int alive[2]; /* pipe: front and keeper hold the end to write */
	int lock;     /* of the place */
};

enum run_word {
	/* keeper to front */
	RUN_READY,
	RUN_FAILED,       /* exit code; the sentence was said */
	RUN_DAEMON_ENDED, /* wait status */
	RUN_DONE,         /* number of things left behind */
	/* front to keeper */
	RUN_FINISH,
	/* front to escort */
	RUN_START,
	RUN_GO,
	RUN_SIGNAL, /* number */
	RUN_END,
	/* escort to front */
	RUN_STARTED, /* the group */
	RUN_NO_EXEC, /* errno */
	RUN_STOPPED, /* signal */
	RUN_CONTINUED,
	RUN_ENDED /* wait status */
};
struct run_message {
	int word, value;
};
/* Peers that are gone are noticed when receiving. */
void run_send(int fd, enum run_word word, int value);
/* False: the peer is gone. */
bool run_receive(int fd, struct run_message *m);

/* Signals as the helpers have them: blocked, so that nothing but SIGKILL ends
 * them; saves how it was. */
void run_signals_block(struct run *r);
/* As it was, in the child that becomes the command. */
void run_signals_restore(const struct run *r);
/* Standard input and output are the command's alone. */
void run_let_go(void);
/* Wait, without blocking, for children; notes what run_children has. */
void run_reap(struct run *r);

/* The processes.  All return the status to exit with. */
int run_front(struct run *r);
int run_keeper(struct run *r);
/* It is killed when all is clean, so that until then there is an heir. */
_Noreturn void run_escort(struct run *r);
int run_daemon(struct run *r, int report);

/*
 * End every descendant but the escort, the daemon, strangers and what is below
 * these two: SIGTERM, after `grace` ms SIGKILL (0: at
 * once), until there is none or some seconds are over.  Reaps.  Returns how many
 * are left; none can be but those that the kernel holds, or that are not ours to
 * kill.
 */
unsigned run_tree_end(struct run *r, unsigned grace);
/* Note the children that this process has now: they are nobody's business. */
void run_tree_begin(struct run *r);
/* How many of these are alive. */
unsigned run_tree_count(struct run *r);
/* Not when it is a zombie that somebody has to reap. */
bool run_process_lives(pid_t pid);
/* For one that is dying: that its sockets are closed does not mean that its locks
 * are free. */
void run_wait_gone(pid_t pid);
/* Is anybody alive in this process group? */
bool run_group_lives(pid_t group);

/* End descendants, unmount, remove the place, end the daemon.  Of heirs and of
 * the regular end; may be done twice.  The escort is left to be an heir.  Returns
 * how many things are left. */
unsigned run_clean(struct run *r, int grace);
/* When nothing is left to be cleaned. */
void run_escort_end(struct run *r);

/* Choose and make the place: r->shared->dir, ->point, r->lock.  0 or -errno with a
 * sentence. */
int run_place_make(struct run *r, struct error *err);
/* Unmount and remove; false with a sentence if that is not possible. */
bool run_place_remove(struct run_shared *p, struct error *err);
/* Remove places of this user that nobody holds: of runs that were killed at once.
 * Mounts of outside cannot be removed in a namespace of our own. */
void run_place_sweep(void);
/* Is this how a place of `uid` is called? */
bool run_place_name(const char *name, uid_t uid);

/* Go into a mount namespace of our own, where mounting is permitted; the user
 * stays who he is.  0 or -errno with a sentence. */
int run_private_enter(struct error *err);

/* The command with "{}" replaced; NULL: out of memory.  Not to be freed. */
char **run_command_args(char *const *argv, const char *view);
/* Looks for the program as execvp will; 0, ENOENT or EACCES. */
int run_command_find(const char *name);
/* Why it cannot be executed, on stderr; the exit status: 126 or 127. */
int run_command_failed(const struct command *c, const char *name, int error);

#endif
