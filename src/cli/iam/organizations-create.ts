import { configureLocalDocker } from '../registry/configure-local.ts'
import { checkDockerConfig, dockerConfigFile } from '../registry/docker-config.ts'
import type { Command } from '../shape/command.ts'
import { createOf } from '../shape/verbs.ts'
import { organizations } from './groups.ts'

const usual = createOf(organizations)

/** As `create` of every resource; beside a data folder the clients on this machine can be signed in at once. */
export const organizationsCreate: Command = {
  ...usual,
  options: [
    {
      flags: '--configure-docker',
      summary: 'Also have docker, crane and others on this machine sign in to the registry',
    },
    ...usual.options,
  ],
  async run(terminal, options) {
    if (options.configureDocker === true) checkDockerConfig(dockerConfigFile(terminal.env))
    const code = await usual.run(terminal, options)
    if (options.configureDocker === true) await configureLocalDocker(terminal, options, String(options.name))
    return code
  },
}
