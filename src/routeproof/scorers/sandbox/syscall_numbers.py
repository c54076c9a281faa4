"""System call numbers of the two machines the sandbox knows.

Each entry is ``name:x86_64:aarch64``, from Linux' asm/unistd_64.h and
asm-generic/unistd.h; ``-`` where a machine has no such call.
"""

PLAIN = """
    read:0:63 write:1:64 close:3:57 fstat:5:80 lseek:8:62 mmap:9:222 mprotect:10:226
    munmap:11:215 brk:12:214 rt_sigaction:13:134 rt_sigprocmask:14:135
    rt_sigreturn:15:139 pread64:17:67 pwrite64:18:68 readv:19:65 writev:20:66
    access:21:- pipe:22:- pipe2:293:59 select:23:- pselect6:270:72 sched_yield:24:124
    mremap:25:216 msync:26:227 mincore:27:232 madvise:28:233 dup:32:23 dup2:33:-
    dup3:292:24 pause:34:- nanosleep:35:101 getitimer:36:102 setitimer:38:103
    alarm:37:- getpid:39:172 gettid:186:178 getppid:110:173 exit:60:93
    exit_group:231:94 wait4:61:260 waitid:247:95 uname:63:160 flock:73:32
    fsync:74:82 fdatasync:75:83 ftruncate:77:46 getdents:78:- getdents64:217:61
    getcwd:79:17 chdir:80:49 fchdir:81:50 readlink:89:- readlinkat:267:78 stat:4:-
    lstat:6:- newfstatat:262:79 statx:332:291 faccessat:269:48 faccessat2:439:439
    open:2:- openat:257:56 gettimeofday:96:169 getrlimit:97:163
    getrusage:98:165 sysinfo:99:179 times:100:153 getuid:102:174 getgid:104:176
    geteuid:107:175 getegid:108:177 getresuid:118:148 getresgid:120:150
    getgroups:115:158 getpgrp:111:- getpgid:121:155 getsid:124:156 sigaltstack:131:132
    rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133
    arch_prctl:158:- sched_getaffinity:204:123 sched_getparam:143:121
    sched_getscheduler:145:120 sched_get_priority_max:146:125
    sched_get_priority_min:147:126 getpriority:140:141 futex:202:98
    set_tid_address:218:96 set_robust_list:273:99 get_robust_list:274:100 rseq:334:293
    clock_gettime:228:113 clock_getres:229:114 clock_nanosleep:230:115
    timer_create:222:107 timer_settime:223:110 timer_gettime:224:108
    timer_delete:226:111 timerfd_create:283:85 timerfd_settime:286:86 poll:7:-
    ppoll:271:73 epoll_create:213:- epoll_create1:291:20 epoll_ctl:233:21
    epoll_wait:232:- epoll_pwait:281:22 eventfd:284:- eventfd2:290:19
    getrandom:318:278 membarrier:324:283 restart_syscall:219:128 umask:95:166
    getcpu:309:168 close_range:436:436 statfs:137:43 fstatfs:138:44 recvfrom:45:207
    shutdown:48:210
"""
"""Calls a program may make as it likes: memory, time, its own descriptors, reading what
Landlock leaves it, waiting."""

CONDITIONAL = """
    clone:56:220 clone3:435:435 kill:62:129 tgkill:234:131 ioctl:16:29 prctl:157:167
    socketpair:53:199 sendto:44:206
    fcntl:72:25 prlimit64:302:261
"""
"""Calls allowed with some arguments only."""

OWN = """
    seccomp:317:277 landlock_create_ruleset:444:444 landlock_add_rule:445:445
    landlock_restrict_self:446:446 capset:126:91
"""
"""Calls the sandbox itself makes on the way in."""

_COLUMN = {"x86_64": 1, "aarch64": 2}
AUDIT_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The machine as seccomp reports it (linux/audit.h)."""


def numbers(table: str, machine: str) -> dict[str, int]:
    """Call numbers of one machine by name; calls it does not have are left out.

    Raises:
        KeyError: The machine is not known.
    """
    column = _COLUMN[machine]
    rows = (entry.split(":") for entry in table.split())
    return {row[0]: int(row[column]) for row in rows if row[column] != "-"}
