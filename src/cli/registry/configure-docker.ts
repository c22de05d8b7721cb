import { hostname, userInfo } from 'node:os'
import { exitCodes } from '../framework/cli-error.ts'
import type { Command, Options, Terminal } from '../framework/command.ts'
import { registryOf, sessionOf, sessionOptions } from '../framework/session.ts'
import { checkDockerConfig, dockerConfigFile, savePassword, useCredentialHelper } from './docker-config.ts'
import { createOptions, createPullToken, pushRole } from './pull-token.ts'

export const configureDocker: Command = {
  details: `Names docker-credential-pinfold as the helper for the registry; it must be on the PATH and prints a token whenever docker
needs one. With --pull-token a pull token is made instead: for a machine without pinfold. It is printed as a docker login
line, or with --save kept in docker's configuration.`,
  options: [
    { flags: '--pull-token', summary: 'Make a pull token instead of naming the helper' },
    { flags: '--save', summary: "With --pull-token: keep it in docker's configuration" },
    ...createOptions,
    ...sessionOptions,
  ],
  async run(terminal, options) {
    const file = dockerConfigFile(terminal.env)
    if (!options.pullToken) {
      const registry = registryOf(sessionOf(terminal, options))
      useCredentialHelper(file, registry)
      terminal.say(`${file} names docker-credential-pinfold for ${registry}`)
      return exitCodes.ok
    }
    if (options.save) checkDockerConfig(file)
    const { identity, password, expiry, registry } = await createPullToken(terminal, options)
    if (options.save) {
      savePassword(file, registry, identity, password)
      terminal.say(`${file} holds a pull token for ${registry} that is good until ${expiry}`)
    } else {
      terminal.print(`echo ${password} | docker login --username ${identity} --password-stdin ${registry}`)
    }
    return exitCodes.ok
  },
}

/** Throws if docker's configuration on this machine cannot be changed. */
export function checkLocalDocker({ env }: Terminal): void {
  checkDockerConfig(dockerConfigFile(env))
}

/** Stores a password that can push to the organization `parent` in docker's configuration. */
export async function configureLocalDocker(terminal: Terminal, options: Options, parent: string): Promise<void> {
  const name = `${userInfo().username} on ${hostname()}`.replace(/[^\w .-]/g, '').slice(0, 63)
  const made = await createPullToken(terminal, { ...options, parent, name, description: 'Pushes from here' }, pushRole)
  const file = dockerConfigFile(terminal.env)
  savePassword(file, made.registry, made.identity, made.password)
  terminal.say(`docker, crane and others on this machine may push to ${made.registry}/${parent} until ${made.expiry}`)
}
