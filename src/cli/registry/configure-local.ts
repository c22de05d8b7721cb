// The clients of this machine, signed in with a password of their own.
import { hostname, userInfo } from 'node:os'
import type { Options, Terminal } from '../shape/command.ts'
import { dockerConfigFile, savePassword } from './docker-config.ts'
import { createPullToken, pushRole } from './pull-token.ts'

/** Makes a password that may push in the organisation `parent`, and keeps it in docker's configuration. */
export async function configureLocalDocker(terminal: Terminal, options: Options, parent: string): Promise<void> {
  const name = `${userInfo().username} on ${hostname()}`.replace(/[^\w .-]/g, '').slice(0, 63)
  const made = await createPullToken(terminal, { ...options, parent, name, description: 'Pushes from here' }, pushRole)
  const file = dockerConfigFile(terminal.env)
  savePassword(file, made.registry, made.identity, made.password)
  terminal.say(`docker, crane and others on this machine may push to ${made.registry}/${parent} until ${made.expiry}`)
}
