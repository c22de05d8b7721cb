// Failures of commands, with their exit codes.
export const exitCodes = { ok: 0, failed: 1, usage: 64, unavailable: 69, refused: 77, config: 78 } as const

/**
 * Error that ends a command, with its exit code. Each line of the message makes sense alone. The message never contains a token.
 */
export class CliError extends Error {
  override name = 'CliError'
  readonly exitCode: number
  constructor(exitCode: number, message: string, cause?: unknown) {
    super(message, { cause })
    this.exitCode = exitCode
  }
}

/** Error for a wrong command line. */
export function usageError(message: string, cause?: unknown): CliError {
  return new CliError(exitCodes.usage, message, cause)
}

/** Error for a command that failed. */
export function failure(message: string, cause?: unknown): CliError {
  return new CliError(exitCodes.failed, message, cause)
}
