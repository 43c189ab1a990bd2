package main
import ("context";"fmt";"os";"slices";"time")
func main(){ ctx:=context.Background()
 var fa,fb,ea,eb []time.Duration
 for i:=0;i<15;i++{
  for _,x:=range []struct{prog string;args []string;fr,ex *[]time.Duration}{{"/tmp/benchbin/artel",[]string{"serve"},&fa,&ea},{"/tmp/benchbin/minimal",nil,&fb,&eb}}{
   d,_:=os.MkdirTemp("","b"); 
   for k,l:=range []*[]time.Duration{x.fr,x.ex}{
   p,err:=start(ctx,"/healthz",x.prog,append(slices.Clone(x.args),"--data",d+"/x")...)
   if err!=nil{panic(err)}
   *l=append(*l,p.started)
   if i==0 {time.Sleep(2*time.Second); m,_:=p.rss(); fmt.Println(x.prog,k,"rss",m>>20)}
   if err:=p.stop();err!=nil{panic(err)}
   }
   os.RemoveAll(d)
 }}
 for _,l:=range [][]time.Duration{fa,fb,ea,eb}{slices.Sort(l);fmt.Println(l[0],l[len(l)/2],l[len(l)-1])}
}
