// Entry point of the program: runs a command, or reads the contents of images for the server that started the process.
import { basename } from 'node:path'

// Under the name of a credential helper, which is a link to the executable, the program is that helper.
const name = basename(process.argv0, '.exe')
if (name.startsWith('docker-credential-')) process.argv.splice(2, 0, 'docker-credential')
else if (name.startsWith('kubelet-credential-provider')) process.argv.splice(2, 0, 'kubelet-credential-provider')

if (process.argv[2] === 'contents-reader' && process.connected) void import('./contents/reader-process.ts')
else void import('./run-command.ts')
