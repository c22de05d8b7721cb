// `npm run bundle`: writes the bundle to build/bundle. `npm run executable`: writes the executable to build/executable.
import { join } from 'node:path'
import { root } from '../run.ts'
import { writeBundle } from './bundle.ts'
import { writeExecutable } from './executable.ts'

if (process.argv[2] === 'executable') console.log(await writeExecutable(join(root, 'build/executable')))
// Users of a checkout run its own bin/pinfold.
else await writeBundle(join(root, 'build/bundle'), '../../bin/pinfold')
