import './app.js';
console.log('loaded', performance.now());
