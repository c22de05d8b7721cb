import { hostname, userInfo } from 'node:os'
import { exitCodes } from '../framework/cli-error.ts'
import type { Command, Options, Terminal } from '../framework/command.ts'
import { registryOf, sessionOf, sessionOptions } from '../framework/session.ts'
import { checkDockerConfig, dockerConfigFile, savePassword, useCredentialHelper } from './docker-config.ts'
import { createOptions, createPullToken, pushRole } from './pull-token.ts'

export const configureDocker: Command = {
  details: `Adds docker-credential-pinfold to Docker's configuration as the credential helper of the registry. The helper must be on the
PATH; it prints a token whenever Docker needs one.
With --pull-token, creates a pull token instead, for a machine without pinfold. Prints it as a docker login command. With --save,
stores it in Docker's configuration on this machine.`,
  options: [
    { flags: '--pull-token', summary: 'Create a pull token instead of configuring the credential helper' },
    { flags: '--save', summary: "With --pull-token: store it in Docker's configuration instead of printing it" },
    ...createOptions,
    ...sessionOptions,
  ],
  async run(terminal, options) {
    const file = dockerConfigFile(terminal.env)
    if (!options.pullToken) {
      const registry = registryOf(sessionOf(terminal, options))
      useCredentialHelper(file, registry)
      terminal.say(`configured docker-credential-pinfold for ${registry} in ${file}`)
      return exitCodes.ok
    }
    if (options.save) checkDockerConfig(file)
    const { identity, password, expiry, registry } = await createPullToken(terminal, options)
    if (options.save) {
      savePassword(file, registry, identity, password)
      terminal.say(`stored a pull token for ${registry} in ${file}; it expires at ${expiry}`)
    } else {
      terminal.print(`echo ${password} | docker login --username ${identity} --password-stdin ${registry}`)
    }
    return exitCodes.ok
  },
}

/** Throws if Docker's configuration on this machine cannot be changed. */
export function checkLocalDocker({ env }: Terminal): void {
  checkDockerConfig(dockerConfigFile(env))
}

/** Creates a password that can push to the organization `parent`, and stores it in Docker's configuration. */
export async function configureLocalDocker(terminal: Terminal, options: Options, parent: string): Promise<void> {
  const name = `${userInfo().username} on ${hostname()}`.replace(/[^\w .-]/g, '').slice(0, 63)
  const made = await createPullToken(
    terminal,
    { ...options, in: parent, name, description: 'Pushes from here' },
    pushRole,
  )
  const file = dockerConfigFile(terminal.env)
  savePassword(file, made.registry, made.identity, made.password)
  terminal.say(
    `docker, crane and similar clients on this machine can push to ${made.registry}/${parent} until ${made.expiry}`,
  )
}
