// `npm run contract`: writes the API contract as a descriptor set, with imports and options, for other tools.
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { must, root } from './run.ts'

mkdirSync(join(root, 'build'), { recursive: true })
must('buf', ['build', '-o', 'build/contract.binpb'])
