// Failures of commands, with their exit codes.
export const exitCodes = { ok: 0, failed: 1, usage: 64, unavailable: 69, refused: 77, config: 78 } as const

/** Failure with its exit code; each line of the message makes sense on its own. Never contains a token. */
export class CliError extends Error {
  override name = 'CliError'
  readonly exitCode: number
  constructor(exitCode: number, message: string, cause?: unknown) {
    super(message, { cause })
    this.exitCode = exitCode
  }
}

/** The command line is wrong. */
export function usageError(message: string, cause?: unknown): CliError {
  return new CliError(exitCodes.usage, message, cause)
}

/** The command did not do its work. */
export function failure(message: string, cause?: unknown): CliError {
  return new CliError(exitCodes.failed, message, cause)
}
