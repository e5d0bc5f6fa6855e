import { fileURLToPath } from 'node:url';
import react from '@vitejs/plugin-react';
import { defineConfig } from 'vitest/config';
import { licenses } from './build/licenses.ts';

const here = (path: string) => fileURLToPath(new URL(path, import.meta.url));
const server = process.env.RECOLLECT_URL ?? 'http://127.0.0.1:7077';

export default defineConfig(({ command }) => ({
  // Built addresses are relative: the server writes <base> for the path under which it is served.
  base: command === 'serve' ? '/console/' : './',
  plugins: [
    react(),
    licenses(),
    {
      name: 'base-while-developing',
      apply: 'serve',
      transformIndexHtml: (html) => html.replace('<head>', '<head><base href="/console/">'),
    },
  ],
  resolve: {
    alias: {
      'recollect-memory': here('../clients/typescript/src/index.ts'),
      // The client's source is used as it lies there, with the packages of this folder.
      'openapi-fetch': here('./node_modules/openapi-fetch/dist/index.mjs'),
    },
  },
  build: {
    outDir: 'dist',
    target: 'es2022',
    modulePreload: { polyfill: false },
    assetsInlineLimit: 0,
    reportCompressedSize: false,
  },
  server: { proxy: { '/v1': server, '/console/session': server } },
  test: {
    environment: 'happy-dom',
    environmentOptions: { happyDOM: { url: 'http://localhost/console/' } },
    include: ['tests/unit/**/*.test.{ts,tsx}'],
    testTimeout: 60_000,
  },
}));
