// Session of a user on this machine. The configuration folder has the refresh token, which changes with each use. The cache has
// access tokens.
import { codes } from '#lib/errors.ts'
import { ApiError, send } from './api-client.ts'
import { CliError, exitCodes, failure } from './cli-error.ts'
import { withLock } from './file-lock.ts'
import { lockOfPerson, type Person, readPerson, removePerson, type UserFiles, writePerson } from './user-files.ts'

export type TokenRequest = {
  audiences: readonly string[]
  scopes?: readonly string[]
  capabilities?: readonly string[]
}

/**
 * Gets a new access token of the user's session. If several commands need one at the same time, only the first refreshes. The
 * others get its stored token from `kept`.
 */
export async function refreshPerson(
  files: UserFiles,
  api: string,
  wish: TokenRequest,
  { kept, keep }: { kept: () => string | undefined; keep: (token: string) => void },
): Promise<string> {
  return withLock(lockOfPerson(files, api), async () => {
    const already = kept()
    if (already !== undefined) return already
    const person = readPerson(files, api)
    if (!person || person.refreshToken === '') throw sessionIsOver()
    const token = await useRefreshToken(files, person, wish)
    keep(token)
    return token
  })
}

async function useRefreshToken(files: UserFiles, person: Person, wish: TokenRequest): Promise<string> {
  const url = new URL('/sts/exchange_refresh_token', person.api)
  for (const audience of wish.audiences) url.searchParams.append('aud', audience)
  for (const scope of wish.scopes ?? []) url.searchParams.append('scopes', scope)
  for (const capability of wish.capabilities ?? []) url.searchParams.append('cap', capability)
  const { token, refreshToken } = await send('POST', url, person.refreshToken).catch((error: unknown) => {
    if (!(error instanceof ApiError) || error.code !== codes.UNAUTHENTICATED.number) throw error
    removePerson(files, person.api)
    throw sessionIsOver()
  })
  const [access, next] = [textOf(token), textOf(refreshToken)]
  if (access === undefined || next === undefined) {
    throw failure(`${person.api} did not answer the refresh with tokens; run pinfold login again`)
  }
  writePerson(files, { ...person, refreshToken: next })
  return access
}

function textOf(raw: unknown): string | undefined {
  const token = (raw as { token?: unknown } | null | undefined)?.token
  return typeof token === 'string' && token !== '' ? token : undefined
}

function sessionIsOver(): CliError {
  return new CliError(exitCodes.refused, 'not signed in: your session has ended; run pinfold login')
}
