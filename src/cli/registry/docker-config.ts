// Configuration file of Docker, which podman, skopeo, crane and oras read as well.

import { randomUUID } from 'node:crypto'
import { mkdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { homedir } from 'node:os'
import { dirname, join } from 'node:path'
import { CliError, exitCodes, failure } from '../framework/cli-error.ts'
import { keepOwner, parseUserJson } from '../framework/user-files.ts'

type DockerConfig = Record<string, unknown> & {
  credHelpers?: Record<string, string>
  auths?: Record<string, { auth?: string }>
}

export function dockerConfigFile(env: Record<string, string | undefined>): string {
  return join(env.DOCKER_CONFIG || join(env.HOME || homedir(), '.docker'), 'config.json')
}

/** Makes Docker use the credential helper `pinfold` for the registry. Keeps the rest of the file. */
export function useCredentialHelper(file: string, registry: string): void {
  change(file, (config) => {
    const { [registry]: _old, ...auths } = config.auths ?? {}
    return { ...config, ...(config.auths && { auths }), credHelpers: { ...config.credHelpers, [registry]: 'pinfold' } }
  })
}

/**
 * Stores a password for the registry in the file. Removes a credential helper for the registry, since Docker would prefer the
 * helper.
 */
export function savePassword(file: string, registry: string, user: string, password: string): void {
  change(file, (config) => {
    const { [registry]: _old, ...credHelpers } = config.credHelpers ?? {}
    const auth = Buffer.from(`${user}:${password}`).toString('base64')
    return { ...config, ...(config.credHelpers && { credHelpers }), auths: { ...config.auths, [registry]: { auth } } }
  })
}

/**
 * Throws if the file cannot be changed. Callers check this before they create a secret, since only the file would have the
 * secret.
 */
export function checkDockerConfig(file: string): void {
  read(file)
  const probe = `${real(file)}.${randomUUID()}`
  try {
    mkdirSync(dirname(probe), { recursive: true, mode: 0o700 })
    writeFileSync(probe, '', { mode: 0o600, flag: 'wx' })
  } catch (error) {
    throw problemWith(file, 'written', error)
  } finally {
    rmSync(probe, { force: true })
  }
}

/** Password for the registry in the file. */
export function passwordFor(file: string, registry: string): { user: string; password: string } | undefined {
  const auth = read(file).auths?.[registry]?.auth
  const [, user, password] = /^([^:]*):(.*)$/s.exec(Buffer.from(String(auth ?? ''), 'base64').toString('utf8')) ?? []
  return user === undefined || password === undefined ? undefined : { user, password }
}

/** True if Docker uses the credential helper `pinfold` for the registry. */
export function usesCredentialHelper(file: string, registry: string): boolean {
  return read(file).credHelpers?.[registry] === 'pinfold'
}

function textOf(config: DockerConfig): string {
  return `${JSON.stringify(config, undefined, '\t')}\n`
}

/** Replaces the file, unless nothing changes. A concurrent reader gets either the old or the new content. */
function change(file: string, edit: (config: DockerConfig) => DockerConfig): void {
  const config = read(file)
  const text = textOf(edit(config))
  // The file may be read-only if another tool manages it.
  if (text === textOf(config)) return
  const target = real(file)
  const fresh = `${target}.${randomUUID()}`
  try {
    mkdirSync(dirname(target), { recursive: true, mode: 0o700 })
    writeFileSync(fresh, text, { mode: 0o600, flag: 'wx', flush: true })
    keepOwner(target, fresh)
    renameSync(fresh, target)
  } catch (error) {
    rmSync(fresh, { force: true })
    throw problemWith(file, 'written', error)
  }
}

/** Some users make the configuration file a link to a file in a git repository, so the target of the link is replaced. */
function real(file: string): string {
  try {
    return realpathSync(file)
  } catch {
    return file
  }
}

function read(file: string): DockerConfig {
  let text: string
  try {
    text = readFileSync(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw problemWith(file, 'read', error)
  }
  try {
    const config = parseUserJson(text.trim() === '' ? '{}' : text)
    if (config !== null && typeof config === 'object' && !Array.isArray(config)) return config as DockerConfig
  } catch {
    // The code below throws the error.
  }
  throw new CliError(
    exitCodes.config,
    `${file} was not changed, because it does not contain a JSON object; correct or move the file, then try again`,
  )
}

function problemWith(file: string, what: string, error: unknown): CliError {
  const { code, message } = error as NodeJS.ErrnoException
  const next = 'set DOCKER_CONFIG to use another folder for the configuration of Docker'
  return failure(`${file} cannot be ${what}: ${code ?? message}\n${next}`, error)
}
