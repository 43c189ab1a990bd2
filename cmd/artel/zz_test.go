package main
import ("testing";"time")
func TestZ(t *testing.T){ dir:=t.TempDir(); for i:=0;i<5;i++{ s:=time.Now(); p:=serving(t,dir,bareEnvironment(dir)); t.Log(time.Since(s)); s=time.Now(); if err:=p.stop();err!=nil{t.Fatal(err)}; t.Log("stop",time.Since(s)) 
 s=time.Now(); verb(t.Context(),dir,bareEnvironment(dir),"version");t.Log("version",time.Since(s)) } }
