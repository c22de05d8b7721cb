// Words for what keeps the server from its address.
const problems: Record<string, string> = {
  EADDRINUSE: 'something else listens there; choose another address with --listen',
  EADDRNOTAVAIL: 'this machine does not have that address',
  ENOTFOUND: 'this machine does not have that address',
  EACCES: 'the system does not allow it, as is usual for ports below 1024',
}

/** The error as it is to be told. */
export function listenProblem(error: unknown, { host, port }: { host: string; port: number }): unknown {
  const problem = problems[(error as NodeJS.ErrnoException).code ?? '']
  return problem ? new Error(`cannot listen on ${host}:${port}: ${problem}`, { cause: error }) : error
}
