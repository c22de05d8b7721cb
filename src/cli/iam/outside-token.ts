// Token of an outside issuer that is exchanged for a token of this server. The source is a file, or the platform of the process.
import { readFileSync } from 'node:fs'
import { send } from '../framework/api-client.ts'
import { CliError, exitCodes, failure } from '../framework/cli-error.ts'
import type { Terminal } from '../framework/command.ts'

/**
 * Path of the service account token that the Kubernetes guide projects for Pinfold. The default token of a pod is never used: it
 * is for the API of the cluster, and a server that received it could use it there.
 */
const kubernetesFiles = ['/var/run/secrets/tokens/pinfold']
const maxBytes = 64 * 1024

export type OutsideToken = { token: string; from: string }

/** Reads the token in a file; `-` is standard input. */
export async function readTokenFile(terminal: Terminal, file: string): Promise<OutsideToken> {
  const from = file === '-' ? 'standard input' : file
  const token = (file === '-' ? await terminal.input() : readFile(file)).trim()
  if (token === '') throw failure(`not signed in: ${from} is empty, and a token was expected`)
  if (token.length > maxBytes || !/^[\x21-\x7e]+$/.test(token)) {
    throw failure(`not signed in: the content of ${from} is not a token`)
  }
  return { token, from }
}

/**
 * Gets a token from the platform on which the process runs. If there is none, throws an error that lists the supported platforms.
 */
export async function ambientToken(
  terminal: Terminal,
  api: string,
  files: readonly string[] = kubernetesFiles,
): Promise<OutsideToken> {
  const { ACTIONS_ID_TOKEN_REQUEST_URL: url, ACTIONS_ID_TOKEN_REQUEST_TOKEN: bearer } = terminal.env
  if (url && bearer) return { token: await gitHubToken(url, bearer, new URL(api).host), from: 'GitHub Actions' }
  const given = terminal.env.PINFOLD_ID_TOKEN?.trim()
  if (given) return { token: given, from: 'PINFOLD_ID_TOKEN' }
  for (const file of files) {
    if (exists(file)) return readTokenFile(terminal, file)
  }
  throw new CliError(
    exitCodes.refused,
    [
      'not signed in: no token of a platform was found; these are supported:',
      '  GitHub Actions: ACTIONS_ID_TOKEN_REQUEST_URL and ACTIONS_ID_TOKEN_REQUEST_TOKEN (permissions: id-token: write)',
      '  GitLab: PINFOLD_ID_TOKEN (in the id_tokens of the job)',
      ...files.map((file) => `  Kubernetes: ${file}`),
      'or read the token from a file: pinfold login --identity-token FILE',
    ].join('\n'),
  )
}

async function gitHubToken(requestUrl: string, bearer: string, audience: string): Promise<string> {
  const url = URL.parse(requestUrl)
  if (!url) throw new CliError(exitCodes.config, 'ACTIONS_ID_TOKEN_REQUEST_URL is not a URL')
  url.searchParams.set('audience', audience)
  try {
    const { value } = await send('GET', url, bearer)
    if (typeof value === 'string' && value !== '') return value
  } catch (error) {
    if (!(error instanceof CliError)) throw error
    throw new CliError(error.exitCode, `GitHub Actions did not issue a token: ${error.message}`, error)
  }
  throw failure('GitHub Actions did not issue a token; check that the job has permissions: id-token: write')
}

function exists(file: string): boolean {
  try {
    return readFileSync(file).length > 0
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EACCES'
  }
}

function readFile(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw failure(`the token file ${file} cannot be read: ${code ?? message}`, error)
  }
}
