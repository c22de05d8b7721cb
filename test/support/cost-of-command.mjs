// Preloaded into a command. When the command ends, writes the modules that it has loaded and the processor time that it has used.
import { writeFileSync } from 'node:fs'
import { registerHooks } from 'node:module'

const modules = []
registerHooks({
  load(url, context, next) {
    modules.push(url)
    return next(url, context)
  },
})
process.on('exit', () => {
  const { user, system } = process.cpuUsage()
  const cpuMs = (user + system) / 1000
  writeFileSync(process.env.PINFOLD_TEST_COST, JSON.stringify({ modules, ofNode: process.moduleLoadList, cpuMs }))
})
