import { type Command, exitCodes } from '../shape/command.ts'
import { registryOf, sessionOf, sessionOptions } from '../shape/session.ts'
import { checkDockerConfig, dockerConfigFile, savePassword, useCredentialHelper } from './docker-config.ts'
import { createOptions, createPullToken } from './pull-token.ts'

export const configureDocker: Command = {
  name: 'configure-docker',
  summary: "Have docker, and what reads docker's configuration, sign in to the registry by themselves",
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
